/** Input files for a run, and downloads of its output files. */
import { fileCall } from './calls.ts'
import { ConnectionError, ErrandError } from './errors.ts'
import type { InputFile, OutputFile } from './generated/types.ts'
import type { RequestOptions, Transport } from './transport.ts'

export type FileContent = string | Uint8Array<ArrayBuffer> | ArrayBuffer | Blob

/** Bytes per call of String.fromCharCode, whose number of arguments is limited. */
const PIECE = 0x8000

/**
 * Builds an entry of a request's `files`. `name` is the path in the working directory. By default the files of a request can
 * have 10 MiB in total; pass larger files by `url`.
 */
export async function inputFile(name: string, content: FileContent): Promise<InputFile> {
  if (typeof content === 'string') return { name, content, encoding: 'utf-8' }
  const blob = content instanceof Blob ? content : new Blob([content])
  const bytes = new Uint8Array(await blob.arrayBuffer())
  const type = blob.type === '' ? {} : { mimeType: blob.type }
  return { name, content: base64(bytes), encoding: 'base64', ...type }
}

/** Downloads output files by the signed URLs in `interaction.files`. URLs expire after an hour; `retrieve` returns new ones. */
export class Files {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Downloads the file and checks it against its `sha256`. */
  async download(file: OutputFile, options?: RequestOptions): Promise<Uint8Array<ArrayBuffer>> {
    return this.#read('download', file, options)
  }

  async text(file: OutputFile, options?: RequestOptions): Promise<string> {
    return new TextDecoder().decode(await this.#read('text', file, options))
  }

  /** Returns the response, for streaming the body. Does not check the `sha256`. */
  async open(file: OutputFile, options?: RequestOptions): Promise<Response> {
    return this.#transport.send(fileCall('open', file), options)
  }

  async #read(method: string, file: OutputFile, options?: RequestOptions): Promise<Uint8Array<ArrayBuffer>> {
    const call = fileCall(method, file)
    for (let tries = 1; ; tries++) {
      const response = await this.#transport.send(call, options)
      const bytes = await response.arrayBuffer().catch(() => undefined)
      if (bytes && (await sha256(bytes)) === file.sha256) return new Uint8Array(bytes)
      if (bytes) throw new ErrandError(`The download of ${file.name} does not match its sha256.`)
      if (tries > this.#transport.maxRetries) throw new ConnectionError(`The download of ${file.name} was interrupted.`)
      await this.#transport.pause(tries, 0, options?.signal)
    }
  }
}

async function sha256(bytes: ArrayBuffer): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function base64(bytes: Uint8Array): string {
  let text = ''
  for (let i = 0; i < bytes.length; i += PIECE) text += String.fromCharCode(...bytes.subarray(i, i + PIECE))
  return btoa(text)
}
