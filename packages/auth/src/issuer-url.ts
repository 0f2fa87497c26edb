import { z } from 'zod'

/** Whether a URL names this machine, where plain http is as private as https. */
export const isLoopback = ({ hostname }: URL) =>
  /^(?:127\.0\.0\.1|\[::1\]|localhost)$/.test(hostname)

/** Whether traffic to this URL is safe from others: https, or loopback. */
export const isPrivateUrl = (url: URL) =>
  url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url))

/** The issuer of an OpenID provider: a URL without query and fragment (OpenID Connect Discovery 1.0, 2). */
export const IssuerUrl = z
  .string()
  .max(500)
  .refine(
    (text) => URL.canParse(text) && isPrivateUrl(new URL(text)) && !/[?#@]/.test(text),
    'must be an https URL, or http on this machine such as http://127.0.0.1:8080',
  )
