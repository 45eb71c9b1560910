/** Raw HTTP over a socket, for requests that no HTTP client would send. */
import { connect, type Socket } from 'node:net'

export interface RawAnswer {
  readonly status: number
  readonly head: string
  readonly text: string
}

/** Opens a connection to an `http://` address. */
export function open(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => resolve(socket))
    socket.once('error', reject)
  })
}

/** Reads until the connection closes or `enough` returns true. Ignores write errors. */
export function readAnswer(socket: Socket, enough: (text: string) => boolean = () => false): Promise<RawAnswer> {
  return new Promise((resolve) => {
    let text = ''
    const done = () => {
      socket.destroy()
      resolve({ status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]), head: text.split('\r\n\r\n')[0] ?? '', text })
    }
    socket.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
      if (enough(text)) done()
    })
    socket.once('close', done).on('error', () => {})
  })
}

/**
 * Writes until `bytes` bytes are sent or the other side closes. Returns the number of bytes that the kernel accepted.
 */
export async function flood(socket: Socket, bytes: number): Promise<number> {
  const chunk = Buffer.alloc(64 * 1024, 0x20)
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  let sent = 0
  while (sent < bytes && !socket.destroyed && socket.writable) {
    sent += chunk.length
    if (!socket.write(chunk)) {
      await Promise.race([new Promise<void>((resolve) => socket.once('drain', resolve)), closed])
    }
  }
  return sent
}
