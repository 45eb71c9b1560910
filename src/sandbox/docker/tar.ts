/** A tar archive (ustar) as a stream: what the daemon takes files in. Everything in it is root's and nobody may write to it. */
import { createReadStream, statSync } from 'node:fs'
import { Readable } from 'node:stream'

/** A directory without a `source`. Names are at most 100 bytes long. */
export interface TarEntry {
  readonly name: string
  readonly source?: string
}

const BLOCK = 512

export function tarStream(entries: readonly TarEntry[]): Readable {
  return Readable.from(pieces(entries), { objectMode: false })
}

async function* pieces(entries: readonly TarEntry[]): AsyncGenerator<Buffer> {
  for (const { name, source } of entries) {
    const size = source === undefined ? 0 : statSync(source).size
    yield header(name, size, source === undefined)
    if (source === undefined) continue
    yield* createReadStream(source, { end: size - 1 })
    yield Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK)
  }
  yield Buffer.alloc(2 * BLOCK)
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
