/**
 * Bodies that are one file: the whole body, or the field `file` of a form. They are streamed, never held in memory, and read up
 * to a size limit.
 */

import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ErrandError } from '../../domain/errors.ts'
import { wrongField } from './fields.ts'
import { tooLarge } from './json-body.ts'

/** Accepted media types: a zip, or a form with one. */
export const UPLOAD_TYPES = ['application/zip', 'application/x-zip-compressed', 'multipart/form-data'] as const
const FORM = 'multipart/form-data'
/** Limits on the other parts of a form. */
const FORM_LIMITS = { fields: 20, fieldSize: 4096, parts: 21, headerPairs: 20 }

/** Streams the uploaded file. Reading throws ErrandError `payload_too_large`, `invalid_request`. */
export async function* uploadOf(
  { raw }: FastifyRequest,
  reply: FastifyReply,
  maxBytes: number,
): AsyncGenerator<Uint8Array> {
  if (raw.headers.expect?.toLowerCase() === '100-continue') reply.raw.writeContinue()
  const chunks = counted(raw, maxBytes)
  yield* raw.headers['content-type']?.toLowerCase().startsWith(FORM)
    ? fileOfForm(raw.headers['content-type'], chunks)
    : chunks
}

async function* counted(raw: FastifyRequest['raw'], maxBytes: number): AsyncGenerator<Uint8Array> {
  let total = 0
  try {
    // Destroying the stream would destroy the socket, and with it the answer.
    for await (const chunk of raw.iterator({ destroyOnReturn: false })) {
      total += chunk.length
      if (total > maxBytes) break
      yield chunk
    }
  } catch (cause) {
    throw new ErrandError('invalid_request', 'The body is incomplete: the connection ended early.', { cause })
  }
  if (total > maxBytes) throw tooLarge(maxBytes)
  if (total === 0) throw new ErrandError('invalid_request', 'The body is empty; send a zip.')
}

async function* fileOfForm(type: string, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const { Busboy } = await import('@fastify/busboy')
  const found = Promise.withResolvers<Readable | undefined>()
  let file: Readable | undefined
  const parser = openParser(
    () =>
      new Busboy({
        headers: { 'content-type': type },
        limits: FORM_LIMITS,
        isPartAFile: (name) => name === 'file',
      }),
  )
  parser.on('file', (_name, stream) => {
    if (file) return void stream.resume()
    file = stream
    found.resolve(stream)
  })
  const sending = pipeline(Readable.from(chunks), parser).then(
    () => found.resolve(undefined),
    (error: Error) => {
      const told = error instanceof ErrandError ? error : badForm(error)
      found.reject(told)
      file?.destroy(told)
    },
  )
  try {
    const stream = await found.promise
    if (!stream) throw wrongField('file', 'is required: the zip, as a field of the form')
    yield* stream
    await sending
  } finally {
    parser.destroy()
  }
}

function openParser<T>(open: () => T): T {
  try {
    return open()
  } catch (error) {
    throw badForm(error as Error)
  }
}

function badForm(cause: Error): ErrandError {
  return new ErrandError('invalid_request', `The form can't be read: ${cause.message.split('\n')[0]}.`, { cause })
}
