/**
 * MCP servers that the operator registered as a command. The program runs in a sandbox of its own, which is created for the
 * run and ends with it. Only that sandbox has the program's secrets.
 */
import type { McpServerConfig } from '../../config.ts'
import type { RunScope } from '../port.ts'
import { createStdioTransport } from './stdio-transport.ts'
import type { ServerTransport } from './transport.ts'

const MAX_STDERR_CHARS = 1_000

type Program = Extract<McpServerConfig, { command: readonly string[] }>

/** Returns a function that starts the program and connects to it. */
export async function programTransports(
  run: RunScope,
  name: string,
  { command, env, envFrom, mounts, network, limits }: Program,
  operatorEnv: Readonly<Record<string, string | undefined>>,
): Promise<() => ServerTransport> {
  const secrets = Object.fromEntries(
    envFrom.flatMap((variable) => (operatorEnv[variable] === undefined ? [] : [[variable, operatorEnv[variable]]])),
  )
  run.conceal(Object.values(secrets))
  const sandbox = await run.openCompanion({ name: `mcp-${name}`, mounts, limits })
  await run.connectCompanion(sandbox, 'mcp', network)
  return () => {
    let stderr = ''
    const start = () =>
      sandbox.spawn({ argv: command, env: { ...env, ...secrets }, pipes: 'stdio' }, (text) => {
        stderr = (stderr + text).slice(-MAX_STDERR_CHARS)
      })
    return { transport: createStdioTransport(start), stderr: () => stderr }
  }
}
