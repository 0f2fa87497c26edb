import { request } from 'undici'
import { compare, type Finding } from '../harness/finding.ts'
import { run, script } from '../harness/program.ts'
import { alternate, median } from '../harness/rounds.ts'
import { login, memory, startStatic } from '../harness/services.ts'
import { settings } from '../harness/settings.ts'
import { timeMedian } from './domains.ts'

/** A login, compared with its password hash alone. */
export async function measureLogin(folder: string): Promise<Finding[]> {
  await using service = await startStatic(folder)
  const logIn = async () => {
    const answer = await request(`${service.url}/api/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: login,
    })
    await answer.body.text()
    if (answer.statusCode !== 200) throw new Error(`login: ${answer.statusCode}`)
  }
  const hash = 'limit: one argon2id of the same cost'
  const figures = await alternate({
    ours: () => timeMedian(logIn),
    [hash]: async () => {
      const times: number[] = JSON.parse(
        await run([...script('peers/argon.ts'), String(settings.seconds)], { env: memory }),
      )
      return median(times)
    },
  })
  return compare({ work: 'login, p50', unit: 'ms' }, figures, {
    [hash]: { of: 'ratio', atMost: 1.1 },
  })
}
