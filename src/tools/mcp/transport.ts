/** A connection to an MCP server: over HTTP (open-servers.ts) or as a program in a sandbox (program-transport.ts). */
import type { Transport } from '@modelcontextprotocol/client'

export interface ServerTransport {
  readonly transport: Transport
  /** Ends the session at the server. Only transports with sessions have it. */
  endSession?(): Promise<void>
  /** The last part of a program's stderr. It often says why the program did not start. */
  stderr?(): string
}

/** A program that failed before it spoke MCP. The message is the end of its stderr. */
export class ProgramError extends Error {
  constructor(stderr: string, cause: unknown) {
    super(stderr, { cause })
    this.name = 'ProgramError'
  }
}
