/** An in-memory sandbox for tests of arguments and outcomes. Code is not run: `exec` returns the result that was set. */

import { Duplex } from 'node:stream'
import { type Entry, type ExecRequest, type ExecResult, type Sandbox, SandboxError } from '../../src/sandbox/port.ts'
import type { ToolContext } from '../../src/tools/port.ts'

export interface MemorySandbox extends Sandbox {
  readonly files: Map<string, Buffer>
  readonly requests: ExecRequest[]
  result: ExecResult
}

export const OK: ExecResult = {
  output: '',
  truncated: false,
  end: { kind: 'exit', code: 0 },
  durationMs: 1200,
  sessionRestarted: false,
}

export function createMemorySandbox(files: Record<string, string | Uint8Array> = {}): MemorySandbox {
  const stored = new Map(Object.entries(files).map(([name, content]) => [name, Buffer.from(content as string)]))
  const isDirectory = (path: string) => path === '.' || [...stored.keys()].some((name) => name.startsWith(`${path}/`))
  const sandbox: MemorySandbox = {
    files: stored,
    requests: [],
    fresh: true,
    result: OK,
    async exec(request, onOutput) {
      sandbox.requests.push(request)
      onOutput(sandbox.result.output)
      return sandbox.result
    },
    job: () => Promise.reject(new Error('This sandbox has no jobs.')),
    jobs: async () => [],
    async writeFile(path, bytes, mode) {
      if (path.startsWith('/etc/')) throw new SandboxError('denied', 'read-only file system')
      const before = mode === 'append' ? (stored.get(path) ?? Buffer.alloc(0)) : Buffer.alloc(0)
      const parts: Uint8Array[] = [before]
      for await (const part of bytes instanceof Uint8Array ? [bytes] : bytes) parts.push(part)
      stored.set(path, Buffer.concat(parts))
    },
    async readFile(path, maxBytes) {
      const bytes = stored.get(path)
      if (!bytes) throw new SandboxError(isDirectory(path) ? 'not_a_file' : 'not_found', path)
      if (bytes.length > maxBytes) throw new SandboxError('too_large', path)
      return bytes
    },
    async *openFile(path, maxBytes) {
      yield await sandbox.readFile(path, maxBytes)
    },
    async list(path) {
      if (!isDirectory(path)) throw new SandboxError('not_found', path)
      const prefix = path === '.' ? '' : `${path}/`
      const entries = new Map<string, Entry>()
      for (const [name, bytes] of stored) {
        if (!name.startsWith(prefix)) continue
        const [first = '', ...rest] = name.slice(prefix.length).split('/')
        entries.set(first, { path: first, type: rest.length > 0 ? 'directory' : 'file', size: bytes.length })
      }
      return { entries: [...entries.values()].sort((a, b) => (a.path < b.path ? -1 : 1)), more: false }
    },
    // No program exists.
    spawn: () => ({
      stream: Duplex.from([]),
      exited: Promise.resolve({ kind: 'exit', code: 127 }),
      kill() {},
    }),
    async setEnvironment() {},
    async listen() {
      throw new SandboxError('unavailable', 'nothing is run here')
    },
    async destroy() {},
  }
  return sandbox
}

export function contextOn(sandbox: Sandbox, overrides: Partial<ToolContext> = {}): ToolContext {
  return {
    sandbox: async () => sandbox,
    key: 'step-1',
    remainingMs: () => 30_000,
    maxToolMs: 60_000,
    onOutput: () => {},
    signal: new AbortController().signal,
    vision: false,
    documents: false,
    outputBytes: 10_000,
    ...overrides,
  }
}
