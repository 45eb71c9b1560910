/** `errand agents`: stored agents over HTTP. Prints the server's JSON, except for the list, which is a table without `--json`. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parse as parseYaml } from 'yaml'
import type { JsonObject, NewAgent } from './client.ts'
import { type ServerOptions, withClient } from './connect.ts'
import { type CliContext, Exit, printable } from './context.ts'
import { parametersFrom } from './parameter-flags.ts'
import { table } from './table.ts'

export interface AgentFields {
  /** JSON or YAML file with the agent's fields; `-` for stdin. The flags below override it. */
  readonly from?: string
  readonly id?: string
  readonly name?: string
  readonly description?: string
  readonly system?: string
  readonly model?: string
  readonly tool: readonly string[]
  readonly skill: readonly string[]
}

export async function listAgents(
  context: CliContext,
  options: ServerOptions & { readonly json: boolean },
): Promise<void> {
  const agents = await withClient(context, options, ({ agents }) => Array.fromAsync(agents.list({ pageSize: 100 })))
  if (options.json) return print(context, agents)
  const rows = agents.map((agent) =>
    [agent.id, agent.displayName, agent.model, agent.version, agent.updateTime].map((cell) =>
      printable(String(cell ?? '-')),
    ),
  )
  context.out.write(table(['ID', 'NAME', 'MODEL', 'VERSION', 'UPDATED'], rows))
}

export async function getAgent(context: CliContext, id: string, options: ServerOptions): Promise<void> {
  print(context, await withClient(context, options, ({ agents }) => agents.retrieve(id)))
}

export async function createAgent(context: CliContext, options: ServerOptions & AgentFields): Promise<void> {
  const body = await agentBody(context, options)
  print(context, await withClient(context, options, ({ agents }) => agents.create(body as NewAgent)))
}

export async function updateAgent(
  context: CliContext,
  id: string,
  options: ServerOptions & AgentFields,
): Promise<void> {
  const body = await agentBody(context, options)
  if (Object.keys(body).length === 0)
    throw new Exit(2, 'No field to change was given; see errand agents update --help.')
  print(context, await withClient(context, options, ({ agents }) => agents.update(id, body)))
}

export async function deleteAgent(context: CliContext, id: string, options: ServerOptions): Promise<void> {
  await withClient(context, options, ({ agents }) => agents.delete(id))
  context.err.write(`${id} is deleted.\n`)
}

async function agentBody(context: CliContext, fields: AgentFields): Promise<JsonObject> {
  const flags = {
    id: fields.id,
    displayName: fields.name,
    description: fields.description,
    systemInstruction: fields.system,
    model: fields.model,
    ...parametersFrom(fields),
    tools: fields.tool.length > 0 ? fields.tool : undefined,
    skills: fields.skill.length > 0 ? fields.skill : undefined,
  }
  const given = Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined))
  return { ...(await readFields(context, fields.from)), ...given }
}

async function readFields(context: CliContext, from: string | undefined): Promise<JsonObject> {
  if (from === undefined) return {}
  try {
    const fields: unknown = parseYaml(
      from === '-' ? await context.readStdin() : readFileSync(resolve(context.cwd, from), 'utf8'),
    )
    if (typeof fields === 'object' && fields !== null && !Array.isArray(fields)) return fields as JsonObject
  } catch (error) {
    throw new Exit(2, `--from ${from} can't be read: ${(error as Error).message.split('\n')[0]}`)
  }
  throw new Exit(2, `--from ${from} must hold a map of an agent's fields, as JSON or YAML.`)
}

function print(context: CliContext, value: unknown): void {
  context.out.write(`${JSON.stringify(value, null, 2)}\n`)
}
