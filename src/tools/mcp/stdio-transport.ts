/**
 * MCP over stdin and stdout of a program in a sandbox: one JSON message a line. Lines that are not messages are ignored, as the
 * protocol requires. A line above the maximum length ends the program.
 */
import { deserializeMessage, type JSONRPCMessage, serializeMessage, type Transport } from '@modelcontextprotocol/client'
import type { SandboxProcess } from '../../sandbox/port.ts'

const MAX_LINE_BYTES = 16 * 1024 * 1024

export function createStdioTransport(start: () => SandboxProcess): Transport {
  let program: SandboxProcess | undefined
  const transport: Transport = {
    async start() {
      program = start()
      const lines = createLines((line) => {
        try {
          transport.onmessage?.(deserializeMessage(line))
        } catch (error) {
          transport.onerror?.(error as Error)
        }
      })
      program.stream.on('data', (chunk: Buffer) => {
        if (lines.add(chunk)) return
        transport.onerror?.(new Error('The program wrote a line that is too long.'))
        program?.kill()
      })
      program.stream.on('error', (error) => transport.onerror?.(error))
      void program.exited.then(() => transport.onclose?.())
    },
    async send(message: JSONRPCMessage) {
      const stream = program?.stream
      if (!stream?.writable) throw new Error('The program has ended.')
      await new Promise<void>((resolve, reject) => {
        stream.write(serializeMessage(message), (error) => (error ? reject(error) : resolve()))
      })
    },
    async close() {
      program?.kill()
      await program?.exited
    },
  }
  return transport
}

/** Splits chunks into lines. `add` returns false once a line is too long. */
function createLines(onLine: (line: string) => void): { add(chunk: Buffer): boolean } {
  let parts: Buffer[] = []
  let length = 0
  return {
    add(chunk) {
      let from = 0
      for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
        const line = Buffer.concat([...parts, chunk.subarray(from, end)])
          .toString('utf8')
          .replace(/\r$/, '')
        parts = []
        length = 0
        from = end + 1
        if (line !== '') onLine(line)
      }
      const rest = chunk.subarray(from)
      length += rest.length
      if (length > MAX_LINE_BYTES) return false
      if (rest.length > 0) parts.push(rest)
      return true
    },
  }
}
