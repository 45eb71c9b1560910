/** A file on its way into the blob store: streamed, and measured as it goes, so that what is said of it is what was stored. */
import { createHash } from 'node:crypto'
import mime from 'mime'
import type { Blobs } from '../../blobs/port.ts'
import type { StoredFile } from '../../domain/interaction.ts'
import { noteTransferred } from '../../runtime/collect-buffers.ts'

/** `mimeType`: the caller's word, else by the name's ending. Throws what the store or the source of the bytes throws: then nothing is stored. */
export async function storeFile(
  blobs: Blobs,
  blob: string,
  name: string,
  bytes: Uint8Array | AsyncIterable<Uint8Array>,
  mimeType?: string,
): Promise<StoredFile> {
  const hash = createHash('sha256')
  let size = 0
  const count = (chunk: Uint8Array) => {
    hash.update(chunk)
    size += chunk.byteLength
    noteTransferred(chunk.byteLength)
    return chunk
  }
  await blobs.put(blob, bytes instanceof Uint8Array ? count(bytes) : counted(bytes, count))
  return {
    name,
    blob,
    size,
    mimeType: mimeType ?? mime.getType(name) ?? 'application/octet-stream',
    sha256: hash.digest('hex'),
  }
}

async function* counted(bytes: AsyncIterable<Uint8Array>, count: (chunk: Uint8Array) => Uint8Array) {
  for await (const chunk of bytes) yield count(chunk)
}
