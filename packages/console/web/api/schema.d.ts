// The JSON of both services, from their generated API types, as `Api.Zone` everywhere in this page. Only types: the page
// loads nothing of the client.

import type {
  paths as DomainPaths,
  components as DomainService,
  operations as Domains,
} from '../../../client/generated/domain-service.d.ts'
import type {
  operations as Files,
  paths as StaticPaths,
  components as StaticService,
} from '../../../client/generated/static-service.d.ts'
import type { CallOptions } from './transport.js'

export as namespace Api

export type ServiceName = 'domains' | 'files'

interface Paths {
  domains: DomainPaths
  files: StaticPaths
}

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'
/** Of both services, where the service is not known. */
export type PathOf<Service extends ServiceName> = keyof Paths[Service] & string
type Names<Path> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never
/** `params` fill the names in the path. */
export type Options<Path> = Omit<CallOptions, 'method'> & {
  params?: Record<Names<Path> extends never ? string : Names<Path>, string | number>
}
type Json<Response> = Response extends { content: { 'application/json': infer Body } } ? Body : null
type BodyIn<All, Path, Verb extends Method> = All extends Paths[ServiceName]
  ? Path extends keyof All
    ? All[Path] extends { [Key in Verb]: { responses: infer Responses } }
      ? Json<Responses[keyof Responses & (200 | 201 | 202)]>
      : never
    : never
  : never
/** The JSON that an operation answers; null where it answers none. */
export type Body<Service extends ServiceName, Path, Verb extends Method> = BodyIn<Paths[Service], Path, Verb>

export type Send = <Service extends ServiceName, Verb extends Method, Path extends PathOf<Service>>(
  service: Service,
  method: Verb,
  path: Path,
  options?: Options<Path>,
) => Promise<Body<Service, Path, Verb>>
export type Get = <Service extends ServiceName, Path extends PathOf<Service>>(
  service: Service,
  path: Path,
  options?: Options<Path>,
) => Promise<Body<Service, Path, 'get'>>

type Domain = DomainService['schemas']
type Static = StaticService['schemas']
type Answer<Operation> = Operation extends {
  responses: { 200: { content: { 'application/json': infer Body } } }
}
  ? Body
  : never

export type LoginAnswer = Domain['LoggedIn']
export type LoginMethods = Domain['LoginMethods']
export type Health = Domain['Health']
export type Pagination = Domain['Pagination'] & { total_is_exact?: boolean }
export type TokenInput = Domain['NewTokenInput']
export type ApiToken = Domain['ApiToken']
export type User = Domain['User']
export type Trust = Domain['Trust']

export type DomainEntry = Domain['DomainEntry']
export type DomainList = Answer<Domains['listDomains']>
export type FoundRecords = Answer<Domains['searchRecords']>
export type DomainInfo = Domain['DomainInfo']
export type RecordInput = Domain['NewZoneInput']['hosts'][number]
export type HostRecord = Domain['HostRecord']
export type Zone = Domain['Zone']
export type Changes = Domain['ChangeSummary']
export type WrittenZone = Domain['WrittenZone']
export type ZonePatch = Domain['ZonePatchInput']
export type HistoryEntry = Domain['HistoryEntry']
export type History = Answer<Domains['listHistory']>
export type HistoryDetail = Answer<Domains['getHistoryEntry']>
export type LedgerChange = Domain['Change']
export type LedgerChanges = Answer<Domains['listChanges']>
export type Event = Domain['Event']
export type Webhook = Domain['Webhook'] | Static['Webhook']
export type Delivery = Domain['Delivery']
export type RegistrarState = Domain['RegistrarState']
/** The types of records that can be written. */
export type RecordTypeName = Domains['setRrset']['parameters']['path']['type']

export type FileRecord = Static['StoredFile']
export type Link = Static['Link']
export type AccessRule = Static['AccessRule']
export type FileChange = Static['Change']
export type FileChanges = Answer<Files['listChanges']>
export type FileHistory = Answer<Files['getHistory']>
export type PastState = FileHistory['history'][number]
export type CategoryCount = Static['Category']
export type DirectoryNode = Static['DirectoryNode']
export type TreeResult = Static['TreeResult']
export type VersionRecord = Static['ListedVersion']
export type VersionList = Answer<Files['listVersions']>
export type VersionDiff = Answer<Files['compareVersions']>
export type Statistics = Static['Stats']

declare global {
  interface Uint8Array {
    toHex?: () => string
  }
  interface HTMLElementTagNameMap {
    'folder-contents': import('../files/folder/folder-contents.js').FolderContents
    'record-form': import('../zone/records/record-form.js').RecordForm
  }
}
