import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SqliteSql, sql } from '@domains-and-files/persistence'
import { expect } from 'vitest'
import { z } from 'zod'
import { databaseFile } from '../../src/catalog/sqlite/sqlite-catalog.ts'
import { check } from '../../src/maintenance/files-command.ts'
import type { ActionOf, HistoryAction } from './history-actions.ts'
import { areInConflict, HistoryModel, type Wanted, without } from './history-model.ts'
import { digest } from './model.ts'
import { type SharedStores, startSharedStores } from './shared-stores.ts'
import { type Service, start } from './start.ts'
import { storedIn } from './stored-contents.ts'
import { makeTar } from './tar.ts'

const Entry = z.object({
  id: z.number(),
  action: z.string(),
  prefix: z.string().nullable(),
  version: z.string().nullable(),
  added: z.number(),
  replaced: z.number(),
  removed: z.number(),
  bytes: z.number(),
  paths: z.array(z.string()),
})
const State = z.object({ sha256: z.string(), size: z.number() }).nullable()
const Answers = z.object({
  changes: z.array(Entry),
  change: Entry.nullable(),
  history: z.array(z.object({ change: z.number(), sha256: z.string().nullable(), is_current: z.boolean() })),
  missing: z.array(z.string()),
  files: z.unknown(),
})
const Digests = z.record(z.string(), z.object({ sha256: z.string() }))
const Files = z.array(z.object({ path: z.string(), before: State, after: State }))

/** Does the same to the service and to the model, and compares them. */
export class HistoryTester implements AsyncDisposable {
  readonly #model = new HistoryModel()
  readonly #dataDir = mkdtempSync(join(tmpdir(), 'static-history-'))
  readonly #stores: SharedStores | undefined
  #running: Service | undefined
  #versions = 0

  static async start(): Promise<HistoryTester> {
    const isShared = process.env.TEST_STORAGE === 'shared'
    const tester = new HistoryTester(isShared ? await startSharedStores() : undefined)
    await tester.restart({ keepDays: 30, keepVersions: 2, isLater: false })
    return tester
  }

  private constructor(stores: SharedStores | undefined) {
    this.#stores = stores
  }

  async [Symbol.asyncDispose]() {
    await this.#running?.[Symbol.asyncDispose]()
    await this.#stores?.[Symbol.asyncDispose]()
    rmSync(this.#dataDir, { recursive: true, force: true })
  }

  async act(action: HistoryAction) {
    const { last } = this.#model
    try {
      await this.#act(action)
    } catch (error) {
      const log = this.#service.lines().filter(({ level }) => level !== 'info')
      throw new Error(`${action.do}: ${JSON.stringify(log.slice(-3))}`, { cause: error })
    }
    const { changes } = await this.#read('/api/changes?page_size=1')
    expect(changes?.map(({ id }) => id) ?? []).toEqual(this.#model.last === 0 ? [] : [this.#model.last])
    if (this.#model.last > last) this.#compareEntry(changes?.[0])
  }

  #act(action: HistoryAction) {
    switch (action.do) {
      case 'put':
        return this.#put(action)
      case 'remove':
        return this.#remove(action)
      case 'forget':
        return this.#forget(action)
      case 'removeBelow':
        return this.#removeBelow(action)
      case 'move':
        return this.#move(action)
      case 'archive':
        return this.#deploy(action, () => makeTar(Object.entries(action.files)))
      case 'manifest':
        return this.#deployManifest(action)
      case 'copy':
        return this.#copy(action)
      case 'revert':
        return this.#revert(action)
      case 'version':
        return this.#recordVersion()
      case 'restart':
        return this.restart(action)
    }
  }

  async #put({ path, content }: ActionOf<'put'>) {
    const wanted: Wanted = new Map([[path, content]])
    const isNew = !this.#model.now().has(path)
    const isRefused = this.#model.conflicts(wanted)
    const { status } = await this.#service.call('PUT', `/api/files/${path}`, { body: content })
    expect(status).toBe(isRefused ? 409 : isNew ? 201 : 200)
    if (!isRefused) this.#model.apply({ action: 'upload' }, wanted)
  }

  async #remove({ paths }: ActionOf<'remove'>) {
    const isThere = paths.every((each) => this.#model.now().has(each))
    const { status } = await this.#post('files/delete', { paths })
    expect(status).toBe(isThere ? 200 : 404)
    if (isThere) this.#model.apply({ action: 'delete' }, absent(paths))
  }

  async #removeBelow({ directory }: ActionOf<'removeBelow'>) {
    const paths = [...this.#model.now(directory).keys()]
    const { status } = await this.#post('files/delete', { prefix: directory || '/' })
    expect(status).toBe(paths.length > 0 || directory === '' ? 200 : 404)
    const cause = { action: 'delete', prefix: directory || '/' } as const
    this.#model.apply({ ...cause, slices: slicesOf(paths.length) }, absent(paths))
  }

  async #forget({ paths }: ActionOf<'forget'>) {
    const { size } = this.#model.now()
    const lost = this.#model.forget(paths)
    const { status, body } = await this.#post('files/delete', { paths, forget: true })
    expect(status).toBe(lost ? 200 : 404)
    if (!lost) return
    expect(body).toMatchObject({ files_deleted: size - this.#model.now().size })
    const digests = [...lost].map(digest)
    const left = async () => (await this.#stored()).filter((stored) => digests.some((each) => stored.includes(each)))
    await expect.poll(left).toEqual([])
  }

  async #move({ paths: [from, to], overwrite }: ActionOf<'move'>) {
    const isDirectory = from.endsWith('/') || from === ''
    const now = this.#model.now()
    const moving = [...now].filter(([path]) => (isDirectory ? path.startsWith(from) : path === from))
    const moved = moving.map(([path, content]) => [to + path.slice(from.length), content] as const)
    const wanted: Wanted = new Map([...absent(moving.map(([path]) => path)), ...moved])
    const left = new Set(moving.map(([path]) => path))
    const isTaken = moved.some(([path]) => now.has(path) && !left.has(path))
    const isRefused = (isDirectory && to.startsWith(from)) || (isTaken && !overwrite) || this.#model.conflicts(wanted)
    const { status } = await this.#post('files/move', {
      from: from || '/',
      to: to || '/',
      overwrite,
    })
    const isMissing = moving.length === 0 && from !== ''
    expect(status).toBe(isMissing ? 404 : from === to ? 200 : isRefused ? 409 : 200)
    if (status !== 200 || from === to) return
    const within = `${from}${from.slice(to.length).split('/')[0]}`
    const isOneStep = from.startsWith(to) && moving.some(([path]) => isAtOrBelow(path, within))
    const slices = isDirectory && !isOneStep ? slicesOf(moving.length) : 0
    this.#model.apply({ action: 'move', slices }, wanted)
  }

  async #deployManifest(action: ActionOf<'manifest'>) {
    const manifest = Object.entries(action.files).map(([name, content]) => [name, { sha256: digest(content) }])
    const body = async () => JSON.stringify({ files: Object.fromEntries(manifest) })
    const { current, past } = this.#model.contents
    const known = new Set([...current, ...past])
    const missing = without(new Set(Object.values(action.files)), known)
    if (missing.size > 0 && !areInConflict(Object.keys(action.files))) {
      const refused = await this.#service.call('PUT', `/api/trees/${action.directory}`, {
        body: await body(),
      })
      expect(refused.status).toBe(409)
      const { missing: named } = Answers.partial().parse(JSON.parse(refused.bytes.toString()))
      expect(named?.sort()).toEqual([...missing].map(digest).sort())
    }
    for (const content of new Set(Object.values(action.files))) {
      const { status } = await this.#service.call('PUT', `/api/contents/${digest(content)}`, {
        body: content,
      })
      expect(status).toBe(known.has(content) ? 204 : 201)
      this.#model.upload(content)
    }
    await this.#deploy(action, body)
  }

  async #deploy(action: ActionOf<'archive' | 'manifest'>, body: () => Promise<Buffer | string>) {
    const contents = new Map(Object.entries(action.files).map(([name, content]) => [action.directory + name, content]))
    const isInvalid = areInConflict([...contents.keys()])
    await this.#replaceTree(action, await body(), isInvalid ? 409 : contents, 'deploy')
  }

  async #copy(action: ActionOf<'copy'>) {
    const { directory, from, pick } = action
    const { changes, versions } = this.#model
    const of = action.at === 'now' ? undefined : action.at === 'change' ? changes : versions
    const chosen = of?.[pick % of.length]
    if (of && !chosen) return
    const at = chosen && ('version' in chosen && 'change' in chosen ? chosen.version : String(chosen.id))
    const change = chosen && ('change' in chosen ? chosen.change : chosen.id)
    const source = change === undefined ? this.#model.now(from) : this.#model.at(change, from)
    const contents =
      source && new Map([...source].map(([path, content]) => [directory + path.slice(from.length), content]))
    const isRestore = at !== undefined || from === directory
    const expected = !contents ? 410 : contents.size === 0 ? 404 : contents
    await this.#replaceTree(action, JSON.stringify({ from, at }), expected, isRestore ? 'restore' : 'deploy')
  }

  async #replaceTree(
    { directory, isMerge, isDryRun, isRecorded }: ActionOf<'archive' | 'manifest' | 'copy'>,
    body: Buffer | string,
    expected: Map<string, string> | number,
    action: 'deploy' | 'restore',
  ) {
    const version = isRecorded ? `v${++this.#versions}` : undefined
    const query = new URLSearchParams({
      mode: isMerge ? 'merge' : 'replace',
      dry_run: String(isDryRun),
      ...(version && { version }),
    })
    const response = await this.#service.call('PUT', `/api/trees/${directory}?${query}`, { body })
    if (typeof expected === 'number') return expect(response.status).toBe(expected)
    const before = this.#model.now()
    const wanted = this.#model.differences(directory, expected, isMerge)
    if (this.#model.conflicts(wanted)) return expect(response.status).toBe(409)
    const counts = { added: 0, replaced: 0, removed: 0 }
    for (const [path, content] of wanted) {
      if (content === undefined) counts.removed += 1
      else counts[before.has(path) ? 'replaced' : 'added'] += 1
    }
    const answer = Answers.partial().loose().parse(JSON.parse(response.bytes.toString()))
    const unchanged = expected.size - counts.added - counts.replaced
    expect([response.status, answer]).toMatchObject([200, { ...counts, unchanged }])
    if (isDryRun) return expect(answer.change).toBeNull()
    const change = this.#model.apply({ action, prefix: directory || '/', version }, wanted)
    if (version !== undefined) this.#model.versions.push({ version, change: this.#model.last })
    expect(answer.change?.id).toBe(change?.id)
  }

  async #revert({ pick, overwrite }: ActionOf<'revert'>) {
    const change = this.#model.changes[pick % this.#model.changes.length]
    if (!change) return
    const wanted = this.#model.reverted(change, overwrite)
    const { status } = await this.#post(`changes/${change.id}/revert`, { overwrite })
    expect(status).toBe(wanted === 'gone' ? 410 : wanted === 'conflict' ? 409 : 200)
    if (typeof wanted !== 'string') this.#model.apply({ action: 'revert' }, wanted)
  }

  async #recordVersion() {
    const version = `v${++this.#versions}`
    const { status } = await this.#post('versions/', { version, changelog: '' })
    expect(status).toBe(201)
    this.#model.versions.push({ version, change: this.#model.last })
    await this.#comparePast()
  }

  /** With other rules; `isLater`: after so much time that all of the past is old. A short grace endangers later writes. */
  async restart({ isLater, ...rules }: Omit<ActionOf<'restart'>, 'do'>, graceSeconds = 86_400) {
    await this.#running?.[Symbol.asyncDispose]()
    if (isLater) {
      this.#model.age()
      await this.#query("update past_files set ended_at = '2001-01-01T00:00:00.000Z' returning path")
    }
    this.#model.rules = rules
    this.#running = await start({
      dataDir: this.#dataDir,
      sliceLimits,
      env: {
        ...this.#stores?.env,
        GARBAGE_GRACE_S: String(graceSeconds),
        KEEP_HISTORY_DAYS: String(rules.keepDays),
        KEEP_VERSIONS: String(rules.keepVersions),
      },
    })
    await this.#comparePast()
  }

  async #comparePast() {
    this.#model.prune()
    const rows = async () => {
      const found = await this.#query<{ id: number; path: string }>(
        'select change_id id, path from past_files where change_id > 0',
      )
      return found.map(({ id, path }) => `${id} ${path}`).sort()
    }
    await expect.poll(rows).toEqual(this.#model.pastRows)
  }

  /** Everything that can be asked about what is, and was. */
  async compare() {
    const { changes, paths } = this.#model
    const listed = await this.#read('/api/changes?page_size=200')
    expect(listed.changes?.length).toBe(changes.length)
    for (const entry of listed.changes ?? []) this.#compareEntry(entry)
    for (const [at, change] of changes.entries()) {
      for (const directory of ['', 'a/']) await this.#compareTree(change.id, directory)
      for (const path of paths.filter((_, index) => index % 4 === at % 4)) await this.#compareContent(change.id, path)
    }
    for (const path of paths) await this.#compareHistory(path)
    await this.#compareTree(undefined, '')
    for (const prefix of ['a/', 'b/']) {
      const found = await this.#read(`/api/changes?page_size=200&prefix=${prefix}`)
      const touching = changes.filter(({ files }) => files.some(({ path }) => path.startsWith(prefix)))
      expect(found.changes?.map(({ id }) => id)).toEqual(touching.map(({ id }) => id).reverse())
    }
    const { current, past } = this.#model.contents
    const stats = await this.#service.call('GET', '/api/versions/stats')
    expect(JSON.parse(stats.bytes.toString())).toMatchObject({
      stored_size: sum(current),
      past_size: sum(past),
    })
  }

  /** After all of the past has gone. */
  async compareDisk() {
    const { current, past } = this.#model.contents
    expect(past).toEqual(new Set())
    const digests = [...current].map(digest).sort()
    const stored = async () => {
      const found = await this.#stored()
      return [...new Set(found.map((each) => /[0-9a-f]{64}/.exec(each)?.[0] ?? each))].sort()
    }
    await expect.poll(stored).toEqual(digests)
    if (!this.#stores) {
      expect(await check({ DATA_DIR: this.#dataDir })).toMatchObject({ damages: [], orphans: [] })
      return
    }
    const { query, s3 } = this.#stores
    const objects = async () => {
      await query("update static_service.garbage set due_at = now() - interval '1 s'")
      const rows = await query<{ key: string }>(
        'select object_key "key" from static_service.contents where object_key is not null',
      )
      const left = without(new Set(s3.store.objects.keys()), new Set(rows.map(({ key }) => key)))
      return [...left].filter((key) => !key.endsWith('/probe'))
    }
    await expect.poll(objects, { interval: 300 }).toEqual([])
  }

  async #stored(): Promise<string[]> {
    return this.#stores?.storedContents(this.#dataDir) ?? storedIn(this.#dataDir)
  }

  #compareEntry(entry: z.infer<typeof Entry> | undefined) {
    const change = this.#model.changes.find(({ id }) => id === entry?.id)
    const { action, prefix, version, files, slices } = change ?? { files: [], slices: 0 }
    const known = new Set(files.map(({ path }) => path))
    const isNamed = ({ length }: string[]) =>
      slices > 0 ? length > 0 && length <= 10 : length === Math.min(10, known.size)
    const count = (isIt: (file: (typeof files)[number]) => boolean) => files.filter(isIt).length
    const stored = files.flatMap(({ after }) => after?.content ?? [])
    const removed = files.flatMap(({ before, after }) => (after ? [] : (before?.content ?? [])))
    expect(entry).toEqual({
      id: change?.id,
      action,
      prefix,
      version,
      added: count(({ before, after }) => !before && after !== undefined),
      replaced: count(({ before, after }) => before !== undefined && after !== undefined),
      removed: count(({ before, after }) => before !== undefined && !after),
      bytes: sum(stored.length > 0 ? stored : removed),
      paths: expect.toSatisfy((paths: string[]) => isNamed(paths) && paths.every((path) => known.has(path))),
    })
  }

  async #compareTree(change: number | undefined, directory: string) {
    const at = change === undefined ? '' : `?at=${change}`
    const { status, bytes } = await this.#service.call('GET', `/api/trees/${directory}${at}`, {
      headers: { accept: 'application/json' },
    })
    const wanted = change === undefined ? this.#model.now() : this.#model.at(change, directory)
    expect(status).toBe(!wanted ? 410 : wanted.size === 0 ? 404 : 200)
    if (status !== 200) return
    const { files } = Answers.partial().parse(JSON.parse(bytes.toString()))
    const found = Object.entries(Digests.parse(files)).map(([name, { sha256 }]) => [directory + name, sha256])
    expect(new Map(found as [string, string][])).toEqual(
      new Map([...(wanted ?? [])].map(([path, content]) => [path, digest(content)])),
    )
  }

  async #compareContent(change: number, path: string) {
    const wanted = this.#model.fileAt(change, path)
    const { status, bytes } = await this.#service.call('GET', `/api/history/content?path=${path}&change=${change}`)
    const isThere = !['missing', 'gone'].includes(wanted)
    expect([status, isThere && bytes.toString()]).toEqual([
      ...[wanted === 'missing' ? 404 : wanted === 'gone' ? 410 : 200, isThere && wanted],
    ])
  }

  async #compareHistory(path: string) {
    const { history } = await this.#read(`/api/history?page_size=200&path=${path}`)
    const states = this.#model.changes.flatMap(({ id, files }) =>
      files
        .filter((file) => file.path === path)
        .map(({ after, isForgotten }) => ({ id, after: isForgotten ? undefined : after })),
    )
    expect(history).toEqual(
      states.reverse().map(({ id, after }) => ({
        change: id,
        sha256: after ? digest(after.content) : null,
        is_current: after?.until === Infinity,
      })),
    )
    const { id } = states[0] ?? { id: 0 }
    const detail = await this.#read(`/api/changes/${id}?page_size=200`)
    const stateOf = (row: { content: string } | undefined) =>
      row ? { sha256: digest(row.content), size: row.content.length } : null
    const touched = this.#model.changes.find((change) => change.id === id)?.files ?? []
    expect(Files.parse(detail.files)).toEqual(
      touched
        .map(({ path, before, after, isForgotten }) => ({
          path,
          before: stateOf(isForgotten ? undefined : before),
          after: stateOf(isForgotten ? undefined : after),
        }))
        .sort((one, other) => (one.path < other.path ? -1 : 1)),
    )
  }

  get #service(): Service {
    if (!this.#running) throw new Error('it has not started')
    return this.#running
  }

  #post(to: string, json: unknown) {
    return this.#service.call('POST', `/api/${to}`, { json })
  }

  async #read(path: string) {
    const { bytes } = await this.#service.call('GET', path)
    return Answers.partial().parse(JSON.parse(bytes.toString()))
  }

  async #query<Row>(text: string): Promise<Row[]> {
    if (this.#stores) return this.#stores.query<Row>(text.replace('past_files', 'static_service.past_files'))
    const isReadOnly = text.startsWith('select')
    const database = new SqliteSql({ file: databaseFile(this.#dataDir), isReadOnly })
    try {
      return await database.all<Row & object>(sql([text]))
    } finally {
      await database.close()
    }
  }
}

// Of deletions and moves of directories.
const sliceLimits = { wholeFiles: 3, sliceFiles: 2 }

const slicesOf = (files: number) => (files > sliceLimits.wholeFiles ? Math.ceil(files / sliceLimits.sliceFiles) : 0)

const isAtOrBelow = (path: string, other: string) => path === other || path.startsWith(`${other}/`)

const absent = (paths: string[]): Wanted => new Map(paths.map((path) => [path, undefined]))

const sum = (contents: Iterable<string>) => [...contents].reduce((total, { length }) => total + length, 0)
