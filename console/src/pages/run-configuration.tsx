/** The configuration of a run, as the server resolved it. */
import { type Parameters, parametersOf } from '../agent-form/parameters.ts'
import type { Interaction } from '../api/types.gen.js'
import { Card } from '../shell/page.tsx'
import { bytes } from '../ui/format.ts'

function parameterRows({ reasoning, temperature, verbosity }: Parameters) {
  const rows = [
    ['Reasoning effort', reasoning?.effort],
    ['Temperature', temperature],
    ['Verbosity', verbosity],
  ] as const
  return rows.filter(([, value]) => value !== undefined).map(([name, value]) => [name, String(value)] as const)
}

export function RunConfiguration({ interaction }: { readonly interaction: Interaction }) {
  const { systemInstruction, model, tools, skills, mcp, network, policy, responseFormat, files } = interaction.resolved
  const rows: readonly (readonly [string, string])[] = [
    ['Model', model],
    ...parameterRows(parametersOf(interaction.resolved)),
    ['System instruction', systemInstruction ?? 'None'],
    ['Tools', tools.join(', ') || 'None'],
    ['Skills', skills.join(', ') || 'None'],
    ['MCP servers', mcp.map(({ name, url }) => (url ? `${name} (${url})` : name)).join(', ') || 'None'],
    ['Network', typeof network === 'string' ? network : network.allow.join(', ')],
    ['Input files', files.map(({ name, size }) => `${name} (${bytes(size)})`).join(', ') || 'None'],
    ['Response format', responseFormat ? JSON.stringify(responseFormat, null, 2) : 'Text'],
    ...Object.entries(policy).map(
      ([key, value]) => [key, typeof value === 'object' ? JSON.stringify(value) : String(value)] as const,
    ),
  ]
  return (
    <Card flush>
      <dl>
        {rows.map(([name, value]) => (
          <div key={name} className="grid gap-x-6 border-t px-4 py-2.5 first:border-t-0 sm:grid-cols-[12rem_1fr]">
            <dt className="text-soft">{name}</dt>
            <dd className="whitespace-pre-wrap break-words">{value}</dd>
          </div>
        ))}
      </dl>
    </Card>
  )
}
