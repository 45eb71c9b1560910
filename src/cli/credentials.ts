/** `errand credentials`: stored secrets, over HTTP. A secret is read from stdin or a file, because other users can see arguments. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parse as parseYaml } from 'yaml'
import type { Credential, CredentialPatch, Errand, JsonObject, NewCredential } from './client.ts'
import { type ServerOptions, withClient } from './connect.ts'
import { type CliContext, Exit, printable } from './context.ts'
import { table } from './table.ts'

export interface CredentialFields extends ServerOptions {
  /** JSON or YAML file with the fields. Default: stdin holds a bearer token. */
  readonly from?: string
  readonly name?: string
  readonly host: readonly string[]
}

/** Creates the credential, or replaces the secret of the one with that id. */
export async function addCredential(context: CliContext, id: string, options: CredentialFields): Promise<void> {
  const secret = await readSecret(context, options.from)
  const flags = { name: options.name, allowedHosts: options.host.length > 0 ? options.host : undefined }
  const given = Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined))
  const fields = { ...secret, ...given }
  const rotated = await withClient(context, options, async (client) => {
    const known = (await allCredentials(client)).some((credential) => credential.id === id)
    if (known) await client.credentials.update(id, fields as CredentialPatch)
    else await client.credentials.create({ id, ...fields } as NewCredential)
    return known
  })
  context.err.write(`${id} is ${rotated ? 'changed' : 'stored'}. The secret cannot be read back.\n`)
}

export async function listCredentials(
  context: CliContext,
  options: ServerOptions & { readonly json: boolean },
): Promise<void> {
  const credentials = await withClient(context, options, allCredentials)
  if (options.json) {
    context.out.write(`${JSON.stringify(credentials, null, 2)}\n`)
    return
  }
  const rows = credentials.map(({ id, name, type, allowedHosts, updateTime, lastUsedTime }) =>
    [id, name, type, allowedHosts?.join(' ') ?? 'any', updateTime, lastUsedTime].map((cell) =>
      printable(String(cell ?? '-')),
    ),
  )
  context.out.write(table(['ID', 'NAME', 'TYPE', 'HOSTS', 'CHANGED', 'LAST USED'], rows))
}

export async function removeCredential(context: CliContext, id: string, options: ServerOptions): Promise<void> {
  await withClient(context, options, ({ credentials }) => credentials.delete(id))
  context.err.write(`${id} is removed.\n`)
}

function allCredentials({ credentials }: Errand): Promise<Credential[]> {
  return Array.fromAsync(credentials.list({ pageSize: 100 }))
}

/** Its error messages never contain what was read. */
async function readSecret(context: CliContext, from: string | undefined): Promise<JsonObject> {
  if (from === undefined) {
    const token = (await context.readStdin()).trim()
    if (token === '') throw new Exit(2, 'Stdin has no token. Use --from FILE for other types of credentials.')
    return { type: 'bearer', token }
  }
  let fields: unknown
  try {
    fields = parseYaml(from === '-' ? await context.readStdin() : readFileSync(resolve(context.cwd, from), 'utf8'))
  } catch {
    throw new Exit(2, `--from ${from} can't be read as JSON or YAML.`)
  }
  if (typeof fields === 'object' && fields !== null && !Array.isArray(fields)) return fields as JsonObject
  throw new Exit(2, `--from ${from} must hold a map of a credential's fields, as JSON or YAML.`)
}
