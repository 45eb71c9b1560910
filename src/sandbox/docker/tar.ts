/**
 * Writes a tar archive (ustar), the format in which the daemon takes files. Every file belongs to root and is read-only.
 *
 * Not the package tar-stream: it would bring seven packages into production to write four short names, which one header
 * function does.
 */
import { createReadStream, statSync } from 'node:fs'
import { Readable } from 'node:stream'

/** A file with this content or copied from `source`; a directory without either. Names are at most 100 bytes long. */
export interface TarEntry {
  readonly name: string
  readonly content?: string
  readonly source?: string
}

const BLOCK = 512

export function tarStream(entries: readonly TarEntry[]): Readable {
  return Readable.from(pieces(entries), { objectMode: false })
}

async function* pieces(entries: readonly TarEntry[]): AsyncGenerator<Buffer> {
  for (const { name, content, source } of entries) {
    if (content !== undefined) {
      const bytes = Buffer.from(content)
      yield* [header(name, bytes.length, false), bytes, padding(bytes.length)]
    } else if (source !== undefined) {
      const { size } = statSync(source)
      yield header(name, size, false)
      yield* createReadStream(source, { end: size - 1 })
      yield padding(size)
    } else yield header(name, 0, true)
  }
  yield Buffer.alloc(2 * BLOCK)
}

function padding(size: number): Buffer {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK)
}

function header(name: string, size: number, directory: boolean): Buffer {
  const block = Buffer.alloc(BLOCK)
  const octal = (value: number, digits: number, at: number) => block.write(value.toString(8).padStart(digits, '0'), at)
  block.write(directory ? `${name}/` : name, 0)
  octal(0o555, 7, 100)
  octal(0, 7, 108) // user
  octal(0, 7, 116) // group
  octal(size, 11, 124)
  octal(0, 11, 136) // time: the same files make the same archive
  block.write(' '.repeat(8), 148)
  block.write(directory ? '5' : '0', 156)
  block.write('ustar\0' + '00', 257)
  octal(
    block.reduce((sum, byte) => sum + byte, 0),
    6,
    148,
  )
  block.write('\0 ', 154)
  return block
}
