/** The encoding of a text file, by its bytes. */
import { isUtf8 } from 'node:buffer'

export interface Encoding {
  readonly name: string
  /** Bytes of a code unit. A match begins at a multiple of it. */
  readonly width: 1 | 2
  /** Returns undefined if the encoding lacks a character. */
  encode(text: string): Buffer | undefined
  decode(bytes: Uint8Array): string
}

export function encodingOf(file: Buffer): Encoding {
  if (file[0] === 0xff && file[1] === 0xfe)
    return { name: 'UTF-16', width: 2, encode: (text) => Buffer.from(text, 'utf16le'), decode: decoder('utf-16le') }
  if (file[0] === 0xfe && file[1] === 0xff) {
    const encode = (text: string) => Buffer.from(text, 'utf16le').swap16()
    return { name: 'UTF-16', width: 2, encode, decode: decoder('utf-16be') }
  }
  if (isUtf8(file))
    return { name: 'UTF-8', width: 1, encode: (text) => Buffer.from(text, 'utf8'), decode: decoder('utf-8') }
  const name = 'Windows-1252 or another single-byte encoding'
  return { name, width: 1, encode: encodeWindows1252, decode: decoder('windows-1252') }
}

function decoder(label: string): (bytes: Uint8Array) => string {
  return (bytes) => new TextDecoder(label).decode(bytes)
}

let windows1252: Map<string, number> | undefined

function encodeWindows1252(text: string): Buffer | undefined {
  windows1252 ??= new Map(
    [...new TextDecoder('windows-1252').decode(Uint8Array.from({ length: 256 }, (_, i) => i))].map((char, i) => [
      char,
      i,
    ]),
  )
  const bytes = [...text].map((char) => windows1252!.get(char))
  return bytes.every((byte) => byte !== undefined) ? Buffer.from(bytes) : undefined
}
