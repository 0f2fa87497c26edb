import { extname } from 'node:path'
import { fileTypeFromBuffer } from 'file-type'
import { lookup } from 'mime-types'

export const categories = [
  'image',
  'video',
  'audio',
  'font',
  'document',
  'archive',
  'code',
  'data',
  'other',
] as const

export type Category = (typeof categories)[number]

/** How many of a file's first bytes `contentTypeOf` wants to see. */
export const headLength = 4100

/** The media type of a file: by its name's extension, else by its first bytes. What a client claims is not asked. */
export async function contentTypeOf(name: string, head: Uint8Array): Promise<string> {
  // Only the extension: to the library a bare `html` would be one.
  const extension = extname(name)
  const known = extension.length > 1 && (lookup(extension) || unlisted.get(extension.toLowerCase()))
  if (known) return known
  const found = await sniff(head)
  return found ?? 'application/octet-stream'
}

/** The category that a media type belongs to. */
export function categoryOf(contentType: string): Category {
  const [top = ''] = contentType.split('/', 1)
  const special = table.get(contentType)
  if (special) return special
  if (top === 'image' || top === 'video' || top === 'audio' || top === 'font') return top
  if (documents.test(contentType)) return 'document'
  if (/\+(?:json|xml|yaml|cbor)$/.test(contentType)) return 'data'
  if (/\+(?:zip|gzip|zstd)$/.test(contentType)) return 'archive'
  if (/^text\/(?:x-|coffeescript|jsx|less|css|html|javascript|jade|stylus)/.test(contentType)) {
    return 'code'
  }
  return top === 'text' ? 'document' : 'other'
}

/** Whether a media type is made of text, so that compressing it pays. */
export const isCompressible = (contentType: string) =>
  contentType.startsWith('text/') ||
  /\+(?:json|xml|text|yaml)$/.test(contentType) ||
  compressible.has(contentType)

// A broken file may make the sniffer throw: it is then simply not known.
async function sniff(head: Uint8Array): Promise<string | undefined> {
  try {
    return (await fileTypeFromBuffer(head))?.mime
  } catch {
    return undefined
  }
}

// Text that the library has no type for and whose first bytes say nothing.
const unlisted = new Map([
  ['.go', 'text/x-go'],
  ['.jsonl', 'application/x-ndjson'],
  ['.kt', 'text/x-kotlin'],
  ['.ndjson', 'application/x-ndjson'],
  ['.py', 'text/x-python'],
  ['.rb', 'text/x-ruby'],
  ['.swift', 'text/x-swift'],
  ['.tsx', 'text/x-tsx'],
  ['.vue', 'text/x-vue'],
])

const listed: Partial<Record<Category, string>> = {
  font: 'font-woff vnd.ms-fontobject x-font-ttf x-font-bdf x-font-pcf x-font-type1 x-font-ghostscript font-tdpfr',
  document:
    'pdf msword rtf epub+zip postscript vnd.ms-excel vnd.ms-powerpoint vnd.ms-works vnd.visio x-abiword x-mobipocket-ebook vnd.amazon.ebook x-tex x-latex x-dvi oxps vnd.ms-xpsdocument',
  archive:
    'zip gzip zstd vnd.rar x-rar-compressed x-7z-compressed x-tar x-bzip x-bzip2 x-xz x-lzip x-lzma x-lz4 x-compress x-cpio java-archive vnd.android.package-archive x-apple-diskimage x-iso9660-image x-debian-package vnd.debian.binary-package x-rpm x-redhat-package-manager vnd.ms-cab-compressed x-stuffit x-ace-compressed x-arj x-deb',
  code: 'xhtml+xml javascript ecmascript typescript wasm x-sh x-csh x-perl x-httpd-php x-tcl x-java-jnlp-file java-vm node x-python-code',
  data: 'json json5 ld+json xml xml-dtd yaml toml sql x-sqlite3 vnd.sqlite3 vnd.apache.parquet vnd.apache.arrow.file cbor x-ndjson geo+json x-msaccess x-hdf x-netcdf n-triples trig protobuf jsonml+json',
}

const table = new Map<string, Category>([
  ['text/csv', 'data'],
  ['text/tab-separated-values', 'data'],
  ['text/xml', 'data'],
  ['text/yaml', 'data'],
  ['text/turtle', 'data'],
  ['text/n3', 'data'],
  ['text/x-vcard', 'document'],
  ...categories.flatMap((category) =>
    (listed[category]?.split(' ') ?? []).map(
      (subtype) => [`application/${subtype}`, category] as const,
    ),
  ),
])

const documents =
  /^application\/(?:vnd\.(?:openxmlformats-officedocument|oasis\.opendocument|ms-(?:word|excel|powerpoint)|apple\.(?:pages|numbers|keynote)|sun\.xml|stardivision)\b)/

const compressible = new Set([
  'application/json',
  'application/json5',
  'application/x-ndjson',
  'application/xml',
  'application/xml-dtd',
  'application/javascript',
  'application/ecmascript',
  'application/typescript',
  'application/yaml',
  'application/toml',
  'application/sql',
  'application/rtf',
  'application/wasm',
  'application/x-sh',
  'application/x-httpd-php',
  'application/vnd.ms-fontobject',
  'font/ttf',
  'font/otf',
  'font/collection',
  'image/bmp',
  'image/x-icon',
  'image/vnd.microsoft.icon',
])
