import type { Answer, Service } from './start.ts'

/** Contents by path, each named by its kind. */
export type Files = Record<string, keyof typeof sizes>

/** A change: what is stored before and after it, and its request. Paths are below a directory of its own. */
export interface CutChange {
  name: string
  before: Files
  after: Files
  /** Whether a version that is named as the directory is there afterwards, too. */
  isRecord?: boolean
  /** Left out of the short form: it takes long. */
  isOnlyWhole?: boolean
  make: (service: Service, directory: string) => Promise<Answer>
  /** Status of a success, and of the same request after it. */
  status: number
  repeated: number
}

// A row of PostgreSQL, an object of one PUT, an object of parts.
const sizes = { small: 1000, large: 70_000, other: 50_000, huge: 17_000_000 }

/** The content of a kind in a directory: no other directory has it. Its text has no capitals. */
export const contentOf = (directory: string, kind: keyof typeof sizes) =>
  Buffer.alloc(sizes[kind], `${directory} ${kind}\n`)

const put = (path: string, kind: keyof typeof sizes) => (service: Service, directory: string) =>
  service.call('PUT', `/api/files/${directory}/${path}`, { body: contentOf(directory, kind) })

const upload = (path: string, kind: keyof typeof sizes) => (service: Service, directory: string) =>
  service.put(`${directory}/${path}`, contentOf(directory, kind))

const post = (to: string, body: (directory: string) => object) => (service: Service, directory: string) =>
  service.call('POST', `/api/${to}`, { json: body(directory) })

export const cutChanges: CutChange[] = [
  {
    name: 'a form upload of a small file',
    before: {},
    after: { 'a.bin': 'small' },
    make: upload('a.bin', 'small'),
    status: 201,
    repeated: 200,
  },
  {
    name: 'a form upload of a large file over another',
    before: { 'a.bin': 'other' },
    after: { 'a.bin': 'large' },
    make: upload('a.bin', 'large'),
    status: 200,
    repeated: 200,
  },
  {
    name: 'an upload of several files',
    before: { 'b.bin': 'other' },
    after: { 'a.bin': 'small', 'b.bin': 'large' },
    make: (service, directory) =>
      service.send('upload/batch', [
        { name: 'path', content: directory },
        { name: 'files', content: contentOf(directory, 'small'), filename: 'a.bin' },
        { name: 'files', content: contentOf(directory, 'large'), filename: 'b.bin' },
      ]),
    status: 201,
    repeated: 201,
  },
  {
    name: 'a PUT of a small file over a large one',
    before: { 'a.bin': 'large' },
    after: { 'a.bin': 'small' },
    make: put('a.bin', 'small'),
    status: 200,
    repeated: 200,
  },
  {
    name: 'a PUT of a large file',
    before: {},
    after: { 'a.bin': 'large' },
    make: put('a.bin', 'large'),
    status: 201,
    repeated: 200,
  },
  {
    name: 'a PUT of a file that is sent to S3 in parts',
    isOnlyWhole: true,
    before: {},
    after: { 'a.bin': 'huge' },
    make: put('a.bin', 'huge'),
    status: 201,
    repeated: 200,
  },
  {
    name: 'a move of a file to a name of another type',
    before: { 'a.bin': 'large', 'c.txt': 'small' },
    after: { 'b.txt': 'large', 'c.txt': 'small' },
    make: post('files/move', (directory) => ({
      from: `${directory}/a.bin`,
      to: `${directory}/b.txt`,
    })),
    status: 200,
    repeated: 404,
  },
  {
    name: 'a move of a directory over files',
    before: { 'a/1.bin': 'large', 'a/2.bin': 'small', 'b/1.bin': 'other' },
    after: { 'b/1.bin': 'large', 'b/2.bin': 'small' },
    make: post('files/move', (directory) => ({
      from: `${directory}/a/`,
      to: `${directory}/b/`,
      overwrite: true,
    })),
    status: 200,
    repeated: 404,
  },
  {
    name: 'a deletion of a file',
    before: { 'a.bin': 'large', 'b.bin': 'other' },
    after: { 'b.bin': 'other' },
    make: (service, directory) => service.call('DELETE', `/api/files/${directory}/a.bin`),
    status: 204,
    repeated: 404,
  },
  {
    name: 'a deletion of several files',
    before: { 'a.bin': 'large', 'b.bin': 'other', 'c.bin': 'small', 'd.bin': 'large' },
    after: { 'd.bin': 'large' },
    make: post('files/delete', (directory) => ({
      paths: ['a', 'b', 'c'].map((name) => `${directory}/${name}.bin`),
    })),
    status: 200,
    repeated: 404,
  },
  {
    name: 'a deletion of a directory',
    before: { 'a/1.bin': 'large', 'a/b/2.bin': 'small', 'c.bin': 'large' },
    after: { 'c.bin': 'large' },
    make: post('files/delete', (directory) => ({ prefix: `${directory}/a/` })),
    status: 200,
    repeated: 404,
  },
  {
    name: 'a version record',
    before: {},
    after: {},
    isRecord: true,
    make: post('versions/', (directory) => ({ version: directory, changelog: 'first' })),
    status: 201,
    repeated: 409,
  },
]
