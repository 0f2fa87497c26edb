import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { describeRow, hasRecordings, read, recordings, split, start } from './support/start.ts'

const Pair = z.object({
  SLD: z.string(),
  TLD: z.string(),
  EmailType_sent: z.string().nullable(),
  sent: z.array(z.record(z.string(), z.string())),
  set_response: z.string(),
  get_response: z.string(),
})

const answerOf = (name: string) => readFileSync(join(recordings, 'answers/dns-lexicon-sandbox', name), 'utf8')

if (hasRecordings) {
  const text = readFileSync(join(recordings, 'roundtrips.json'), 'utf8')
  const { roundtrips } = z.object({ roundtrips: z.array(Pair) }).parse(JSON.parse(text))
  const cases = roundtrips.map((pair, index) => ({ index, pair }))

  test.each(cases)('recorded round trip $index leaves the zone that was recorded', async ({ pair }) => {
    const name = `${pair.SLD}.${pair.TLD}`
    await using registrar = await start({ domains: [{ name, emailType: 'FWD' }] })
    const recorded = read(answerOf(pair.get_response))
    const email = pair.EmailType_sent === null ? {} : { EmailType: pair.EmailType_sent }

    const written = await registrar.setHosts(name, pair.sent, email)
    const answer = await registrar.call('domains.dns.getHosts', split(name))

    const rows = answer.list('host').map(describeRow)
    const expected = recorded.list('host').map(describeRow)
    expect(written.first('DomainDNSSetHostsResult')['@IsSuccess']).toBe('true')
    expect(rows.map(sortKey)).toEqual(expected.map(sortKey))
    expect(rows.map(String).sort()).toEqual(expected.map(String).sort())
    expect(head(answer)).toEqual(head(recorded))
  })
} else {
  test(`there are no recordings at ${recordings}, so no round trip was replayed`, () => {
    expect(hasRecordings).toBe(false)
  })
}

const sortKey = ([name, type]: ReturnType<typeof describeRow>) => [type, name]

function head(answer: ReturnType<typeof read>) {
  const result = answer.first('DomainDNSGetHostsResult')
  return ['@Domain', '@EmailType', '@IsUsingOurDNS'].map((name) => result[name])
}
