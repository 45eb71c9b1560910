/** Streams a file into the blob store, and computes its size and digest from the stored bytes. */
import { createHash } from 'node:crypto'
import mime from 'mime'
import type { Blobs } from '../../blobs/port.ts'
import type { StoredFile } from '../../domain/interaction.ts'
import { noteTransferred } from '../../runtime/collect-buffers.ts'

/** `mimeType` defaults to the type of the file extension. Throws errors of the store or the source; then nothing is stored. */
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
