/** Files into a run, and out of it. */
import { fileCall } from './calls.ts'
import { ConnectionError, ErrandError } from './errors.ts'
import type { InputFile, OutputFile } from './generated/types.ts'
import type { RequestOptions, Transport } from './transport.ts'

export type FileContent = string | Uint8Array<ArrayBuffer> | ArrayBuffer | Blob

/** Characters of a call's argument list are bounded. */
const PIECE = 0x8000

/**
 * A file as a request's `files` take it: `name` is its path in the working directory. At most 10 MiB in all by default;
 * larger ones go by `url`.
 */
export async function inputFile(name: string, content: FileContent): Promise<InputFile> {
  if (typeof content === 'string') return { name, content, encoding: 'utf-8' }
  const blob = content instanceof Blob ? content : new Blob([content])
  const bytes = new Uint8Array(await blob.arrayBuffer())
  const type = blob.type === '' ? {} : { mimeType: blob.type }
  return { name, content: base64(bytes), encoding: 'base64', ...type }
}

/** What agents made, by the signed addresses in `interaction.files`. They hold for an hour; `retrieve` mints new ones. */
export class Files {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** The whole file, checked against its `sha256`. */
  async download(file: OutputFile, options?: RequestOptions): Promise<Uint8Array<ArrayBuffer>> {
    return this.#read('download', file, options)
  }

  async text(file: OutputFile, options?: RequestOptions): Promise<string> {
    return new TextDecoder().decode(await this.#read('text', file, options))
  }

  /** The response itself, for reading the body as it arrives; its `sha256` is not checked. */
  async open(file: OutputFile, options?: RequestOptions): Promise<Response> {
    return this.#transport.send(fileCall('open', file), options)
  }

  async #read(method: string, file: OutputFile, options?: RequestOptions): Promise<Uint8Array<ArrayBuffer>> {
    const call = fileCall(method, file)
    for (let tries = 1; ; tries++) {
      const response = await this.#transport.send(call, options)
      const bytes = await response.arrayBuffer().catch(() => undefined)
      if (bytes && (await sha256(bytes)) === file.sha256) return new Uint8Array(bytes)
      if (bytes) throw new ErrandError(`What came for ${file.name} is not what the agent made: its sha256 is another.`)
      if (tries > this.#transport.maxRetries) throw new ConnectionError(`The download of ${file.name} broke off.`)
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
