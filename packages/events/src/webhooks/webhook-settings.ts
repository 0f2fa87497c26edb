import { Network } from '@domains-and-files/auth'
import { z } from 'zod'

/** The settings of webhooks, as a zod shape to spread into a service's schema. */
export const webhookSettings = {
  WEBHOOK_HTTP: z.enum(['true', 'false'], 'must be true or false').default('false'),
  WEBHOOK_NETWORKS: z
    .string()
    .default('')
    .transform((text) => text.split(',').flatMap((each) => each.trim() || []))
    .refine(
      (list) => list.every((each) => Network.safeParse(each).success),
      'must be networks such as 192.0.2.0/24,::1/128',
    ),
}

type WebhookSettings = z.output<z.ZodObject<typeof webhookSettings>>

export type WebhookConfig = ReturnType<typeof webhookConfig>

/** The part `webhooks` of a service's config. */
export const webhookConfig = (settings: WebhookSettings) => ({
  /** Whether a webhook may have an `http:` URL. */
  allowsHttp: settings.WEBHOOK_HTTP === 'true',
  /** Private networks that webhooks may lead to. */
  networks: settings.WEBHOOK_NETWORKS,
})
