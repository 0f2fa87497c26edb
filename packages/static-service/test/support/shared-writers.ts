import { randomBytes, randomInt } from 'node:crypto'
import type { Program } from './program.ts'

/** What may be at a path: a content, or nothing. */
type State = Buffer | undefined

/** A file that one writer changes, and the states that its changes so far allow. */
interface Path {
  path: string
  allowed: State[]
}

export interface Outcomes {
  acknowledged: number
  refused: number
  unknown: number
  /** Responses that break a promise. */
  faults: string[]
}

interface Campaign {
  /** A replica that runs, chosen at random. */
  pick: () => Pick<Program, 'ask'>
  token: string
  /** Called after each change. */
  onChange: () => Promise<void>
  outcomes: Outcomes
}

// Several paths share contents, so that equal ones are stored, freed and stored again at the same time.
const shared = Array.from({ length: 10 }, (_, at) => randomBytes(at % 2 === 0 ? 1000 : 70_000 + at))

/** Changes its own files one after the other, and reads each back from another replica. */
export class SharedWriter {
  readonly paths: Path[]
  readonly #campaign: Campaign

  constructor(name: string, campaign: Campaign) {
    this.paths = [0, 1, 2, 3].map((at) => ({ path: `${name}/${at}`, allowed: [undefined] }))
    this.#campaign = campaign
  }

  async change(): Promise<void> {
    const path = this.paths[randomInt(this.paths.length)]
    if (!path) return
    await this.#write(path, randomInt(4) === 0 ? undefined : pickContent())
    await this.check(path)
    await this.#campaign.onChange()
  }

  /** Compares a file with what it may be. Without a reply there is nothing to compare. */
  async check({ path, allowed }: Path): Promise<boolean> {
    const { pick, outcomes } = this.#campaign
    const reply = await pick()
      .ask({ method: 'GET', path: `/static/${path}`, headers: {} })
      .catch(() => undefined)
    if (!reply || reply.status === 503) return false
    const isAllowed = allowed.some((state) =>
      state === undefined ? reply.status === 404 : reply.status === 200 && reply.bytes.equals(state),
    )
    if (!isAllowed) {
      const sizes = allowed.map((state) => state?.length ?? 'nothing').join(' or ')
      outcomes.faults.push(`${path}: ${reply.status}, ${reply.bytes.length} bytes, not ${sizes}`)
    }
    return true
  }

  async #write(target: Path, content: State) {
    const { pick, token, outcomes } = this.#campaign
    const method = content ? 'PUT' : 'DELETE'
    const headers = { authorization: `Bearer ${token}` }
    const reply = await pick()
      .ask({ method, path: `/api/files/${target.path}`, headers, body: content })
      .catch(() => undefined)
    if (!reply || reply.body.code === 'outcome_unknown') {
      outcomes.unknown += 1
      target.allowed.push(content)
    } else if (reply.status < 300) {
      outcomes.acknowledged += 1
      target.allowed = [content]
    } else if (reply.status === 404) {
      target.allowed = target.allowed.filter((state) => state === undefined)
      if (target.allowed.length === 0) outcomes.faults.push(`${target.path}: deleted, but missing`)
    } else if (reply.status === 503) {
      outcomes.refused += 1
    } else {
      outcomes.faults.push(`${method} ${target.path}: ${reply.status} ${reply.body.code}`)
    }
  }
}

function pickContent(): Buffer {
  const kind = randomInt(100)
  if (kind === 0) return randomBytes(17_000_000) // In parts.
  if (kind < 20) return randomBytes(kind < 10 ? 500 : 60_000)
  return shared[randomInt(shared.length)] ?? Buffer.alloc(0)
}
