/** Creates zip files byte by byte, so that a test can write invalid ones. */
import { crc32, deflateRawSync } from 'node:zlib'

export interface ZipEntry {
  /** File name. A buffer allows bytes that are not text. */
  readonly name: string | Buffer
  readonly data?: string | Buffer
  /** Unix mode with the file type. Default: a regular file, 0644. A name that ends with a slash is a folder. */
  readonly mode?: number
  /** Values for the headers, to write false ones. */
  readonly flags?: number
  readonly method?: number
  readonly crc?: number
  readonly size?: number
  readonly compressedSize?: number
  /** Offset of the entry in the central directory. */
  readonly offset?: number
  readonly extra?: Buffer
}

const UTF8_NAMES = 0x800

export function zip(entries: readonly ZipEntry[], end: { readonly count?: number } = {}): Buffer<ArrayBuffer> {
  const locals: Buffer[] = []
  const centrals: Buffer[] = []
  let position = 0
  for (const entry of entries) {
    const name = Buffer.from(entry.name as string)
    const data = Buffer.from((entry.data ?? '') as string)
    const method = entry.method ?? 8
    const packed = method === 8 ? deflateRawSync(data) : data
    const extra = entry.extra ?? Buffer.alloc(0)
    const isFolder = name.at(-1) === 0x2f
    const common = Buffer.alloc(26)
    common.writeUInt16LE(20, 0)
    common.writeUInt16LE(entry.flags ?? UTF8_NAMES, 2)
    common.writeUInt16LE(method, 4)
    common.writeUInt32LE(entry.crc ?? crc32(data), 10)
    common.writeUInt32LE(entry.compressedSize ?? packed.length, 14)
    common.writeUInt32LE(entry.size ?? data.length, 18)
    common.writeUInt16LE(name.length, 22)
    common.writeUInt16LE(extra.length, 24)
    const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), common, name, extra, packed])
    const rest = Buffer.alloc(14)
    rest.writeUInt32LE(((entry.mode ?? (isFolder ? 0o040_755 : 0o100_644)) << 16) >>> 0, 6)
    rest.writeUInt32LE(entry.offset ?? position, 10)
    // The last byte before the common fields is the host system: 3 is Unix, which makes the mode a Unix mode.
    centrals.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x03', 'latin1'), common, rest, name, extra]))
    locals.push(local)
    position += local.length
  }
  const directory = Buffer.concat(centrals)
  const tail = Buffer.alloc(22)
  tail.write('PK\x05\x06', 'latin1')
  tail.writeUInt16LE(end.count ?? entries.length, 8)
  tail.writeUInt16LE(end.count ?? entries.length, 10)
  tail.writeUInt32LE(directory.length, 12)
  tail.writeUInt32LE(position, 16)
  return Buffer.concat([...locals, directory, tail])
}

/** Text of a SKILL.md with these fields. `more` is additional front matter, unchanged. */
export function skillText(name: string, instructions = 'Do it well.', more = ''): string {
  return `---\nname: ${name}\ndescription: Does ${name}. Use it for ${name}.\n${more}---\n\n${instructions}\n`
}
