import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import openapiTypes, { astToString } from 'openapi-typescript'
import ts from 'typescript'
import { root, startEverything } from './everything.ts'

/** The TypeScript types of a service's OpenAPI document. */
export async function generateTypes(serviceUrl: string): Promise<string> {
  const headers = { connection: 'close' } // A connection that is left open may be closed while types are generated.
  const document = await (await fetch(`${serviceUrl}/openapi.json`, { headers })).text()
  // Without this hook openapi-typescript types binary contents as string.
  const transform = ({ format }: { format?: string }) =>
    format === 'binary' ? ts.factory.createTypeReferenceNode('Blob') : undefined
  const types = astToString(await openapiTypes(document, { transform }))
  return `// Generated from /openapi.json by \`npm run client:generate\`; do not edit.\n${types}`
}

/** The generated file of a service in packages/client. */
export const typesFile = (service: string) => join(root, 'packages/client/generated', `${service}.d.ts`)

if (import.meta.main) {
  await using everything = await startEverything()
  const urls = { 'domain-service': everything.domains, 'static-service': everything.files }
  for (const [service, url] of Object.entries(urls)) {
    writeFileSync(typesFile(service), await generateTypes(url))
  }
}
