import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@hey-api/openapi-ts'
import { generateSource } from 'oazapfts'
import { root } from './everything.ts'
import { generateTypes } from './generate-client.ts'

/** What three generators make of the OpenAPI documents, in a temporary directory that disposal removes. */
export class GeneratedClients implements Disposable {
  readonly directory = mkdtempSync(join(tmpdir(), 'clients-'))

  constructor() {
    // The output of oazapfts imports its runtime.
    symlinkSync(join(root, 'test/node_modules'), join(this.directory, 'node_modules'))
    writeFileSync(join(this.directory, 'package.json'), '{ "type": "module" }')
  }

  /** Runs each generator on the OpenAPI document of a service. */
  async generate(service: string, url: string) {
    const to = (generator: string) => join(this.directory, 'generated', generator)
    for (const generator of ['openapi-typescript', 'oazapfts']) {
      mkdirSync(to(generator), { recursive: true })
    }
    const document = join(this.directory, `${service}.json`)
    writeFileSync(document, await (await fetch(`${url}/openapi.json`)).text())
    writeFileSync(join(to('openapi-typescript'), `${service}.ts`), await generateTypes(url))
    writeFileSync(join(to('oazapfts'), `${service}.ts`), await generateSource(document))
    await createClient({
      input: document,
      output: { path: join(to('hey-api'), service), module: { extension: '.ts' } },
      logs: { level: 'silent', file: false },
    })
  }

  /** Imports a generated file. */
  import(file: string): Promise<object> {
    return import(join(this.directory, 'generated', file))
  }

  [Symbol.dispose]() {
    rmSync(this.directory, { recursive: true })
  }
}
