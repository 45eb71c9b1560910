/** The kind of a file by its content. The name is ignored, because it may be wrong. */

export type FileKind =
  | { readonly kind: 'text'; readonly text: string; readonly encoding: string }
  | { readonly kind: 'image'; readonly mimeType: string }
  | { readonly kind: 'pdf' }
  | { readonly kind: 'binary'; readonly name: string }

/** Patterns for the first bytes, as Latin-1. Only image formats that every provider accepts. */
const MAGIC: readonly (readonly [RegExp, FileKind])[] = [
  [/^\x89PNG\r\n\x1a\n/, { kind: 'image', mimeType: 'image/png' }],
  [/^\xff\xd8\xff/, { kind: 'image', mimeType: 'image/jpeg' }],
  [/^GIF8[79]a/, { kind: 'image', mimeType: 'image/gif' }],
  [/^RIFF[\s\S]{4}WEBP/, { kind: 'image', mimeType: 'image/webp' }],
  [/^%PDF-/, { kind: 'pdf' }],
  [/^PK\x03\x04/, { kind: 'binary', name: 'ZIP archive or Office document' }],
  [/^\x1f\x8b/, { kind: 'binary', name: 'gzip' }],
  [/^\x7fELF/, { kind: 'binary', name: 'ELF program' }],
  [/^SQLite format 3\0/, { kind: 'binary', name: 'SQLite database' }],
  [/^PAR1/, { kind: 'binary', name: 'Parquet' }],
]

export function fileKind(bytes: Uint8Array): FileKind {
  const head = Buffer.from(bytes.subarray(0, 64)).toString('latin1')
  for (const [magic, kind] of MAGIC) if (magic.test(head)) return kind
  if (head.startsWith('\xff\xfe')) return { kind: 'text', ...decode(bytes, 'utf-16le') }
  if (head.startsWith('\xfe\xff')) return { kind: 'text', ...decode(bytes, 'utf-16be') }
  if (bytes.includes(0)) return { kind: 'binary', name: 'unknown type' }
  try {
    return { kind: 'text', text: new TextDecoder('utf-8', { fatal: true }).decode(bytes), encoding: 'utf-8' }
  } catch {
    return mostlyControl(bytes)
      ? { kind: 'binary', name: 'unknown type' }
      : { kind: 'text', ...decode(bytes, 'windows-1252') }
  }
}

function decode(bytes: Uint8Array, encoding: string): { text: string; encoding: string } {
  return { text: new TextDecoder(encoding).decode(bytes), encoding }
}

/** More than 2 % of the bytes are control characters that text does not contain. */
function mostlyControl(bytes: Uint8Array): boolean {
  let control = 0
  for (const byte of bytes) if (byte < 32 && byte !== 9 && byte !== 10 && byte !== 13) control++
  return control * 50 > bytes.length
}
