import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { type Header, pack } from 'tar-stream'

export type Member = [name: string, content: string | Buffer, header?: Partial<Header>]

/** A tar of these members. */
export async function makeTar(members: Iterable<Member>): Promise<Buffer> {
  const packed = pack()
  for (const [name, content, header] of members) packed.entry({ name, ...header }, content)
  packed.finalize()
  return buffer(Readable.from(packed))
}
