import { hash } from 'node:crypto'
import { type App, forbidden, validationFailed } from '@domains-and-files/http'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Dependencies } from '../storage.ts'
import type { AcmeChallenges } from './acme-challenges.ts'
import { expectHostName } from './host-name.ts'
import { answerJsonError, anyCase, moveFaults, parseBody } from './json-protocol.ts'
import { contextOf, writeRoute } from './retrying-writer.ts'

/**
 * The httpreq protocol of lego, which Traefik, acme.sh (`dns_acmeproxy`) and Caddy (`acmeproxy`) speak too: sets and
 * removes the TXT records of ACME DNS-01 challenges (RFC 8555, 8.4).
 */
export function registerHttpreqRoutes(scope: App, challenges: AcmeChallenges, parts: Dependencies) {
  const serve = (action: 'present' | 'cleanUp') => async (request: FastifyRequest) => {
    const context = contextOf(request, parts)
    const { fqdn, value } = readChallenge(request.body)
    const host = await expectHostName(fqdn, { ...parts, ...context })
    // Only a token that names the record may use another name: clients follow CNAMEs, which may lead anywhere.
    if (!/^_acme-challenge(?:\.|$)/.test(host.name) && !context.caller.records)
      throw forbidden(`${fqdn} does not begin with _acme-challenge: use a token whose records name it`)
    await challenges[action](host, value, context, { protocol: 'httpreq' }).catch(
      moveFaults((_index, field) => (field === 'name' ? '/fqdn' : '/value')),
    )
    return echo(request.body, { fqdn, value })
  }
  const options = { ...writeRoute, errorHandler: answerJsonError() }
  scope.post('/integrations/acme/present', options, serve('present'))
  scope.post('/integrations/acme/cleanup', options, serve('cleanUp'))
}

// What is no text counts as missing.
const text = z.string().optional().catch(undefined)
const Challenge = anyCase(z.object({ fqdn: text, value: text, domain: text, keyAuth: text }))

// lego's RAW mode sends the key authorization, from which the value is computed (RFC 8555, 8.4).
function readChallenge(body: unknown) {
  const { domain, keyAuth, ...given } = parseBody(Challenge, body)
  const fqdn = given.fqdn ?? (domain && `_acme-challenge.${domain}.`)
  const value = given.value ?? (keyAuth && hash('sha256', keyAuth, 'base64url'))
  const missing = [...(fqdn ? [] : ['/fqdn']), ...(value ? [] : ['/value'])]
  if (!fqdn || !value) throw validationFailed(missing.map((path) => ({ path, message: 'is missing' })))
  return { fqdn, value }
}

// With the keys as the client wrote them: acme.sh looks for the quoted value in the response.
function echo(body: unknown, challenge: { fqdn: string; value: string }) {
  const keys = Object.keys(JSON.parse(String(body)))
  return Object.fromEntries(
    Object.entries(challenge).map(([name, each]) => [keys.find((key) => key.toLowerCase() === name) ?? name, each]),
  )
}
