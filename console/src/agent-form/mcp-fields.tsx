/** The form of a run's MCP servers, by URL or by the name of a registered server. */
import { useQuery } from '@tanstack/react-query'
import type { McpServer } from '../api/types.gen.js'
import { credentialsQuery } from '../server/queries.ts'
import { Button, IconButton } from '../ui/button.tsx'
import { Field, Input, Select } from '../ui/field.tsx'

interface McpFieldsProps {
  readonly servers: readonly McpServer[]
  readonly onChange: (servers: readonly McpServer[]) => void
}

export function McpFields({ servers, onChange }: McpFieldsProps) {
  return (
    <>
      {servers.map((server, i) => (
        <McpServerFields
          key={i}
          server={server}
          onChange={(changed) => onChange(servers.with(i, changed))}
          onRemove={() => onChange(servers.toSpliced(i, 1))}
        />
      ))}
      <div>
        <Button size="small" icon="plus" onClick={() => onChange([...servers, { name: '' }])}>
          Add server
        </Button>
      </div>
    </>
  )
}

function McpServerFields({
  server,
  onChange,
  onRemove,
}: {
  readonly server: McpServer
  readonly onChange: (server: McpServer) => void
  readonly onRemove: () => void
}) {
  const credentials = useQuery(credentialsQuery)
  const authentication = server.authentication as
    | { readonly type?: string; readonly credentialId?: string }
    | null
    | undefined
  return (
    <div className="grid gap-3 rounded-lg border p-3">
      <div className="flex items-end gap-2">
        <Field label="Name" className="flex-1">
          {(control) => (
            <Input
              {...control}
              value={server.name}
              placeholder="tracker"
              onChange={(event) => onChange({ ...server, name: event.target.value })}
            />
          )}
        </Field>
        <IconButton icon="trash" label={`Remove ${server.name || 'server'}`} onClick={onRemove} />
      </div>
      <Field label="URL" hint="Leave empty to use the server registered under this name.">
        {(control) => (
          <Input
            {...control}
            type="url"
            value={server.url ?? ''}
            placeholder="https://mcp.example.com"
            onChange={(event) => onChange({ ...server, url: event.target.value || undefined })}
          />
        )}
      </Field>
      <Field label="Credential">
        {(control) => (
          <Select
            {...control}
            value={authentication?.credentialId ?? ''}
            onChange={(event) =>
              onChange({
                ...server,
                authentication: event.target.value
                  ? { type: 'credential', credentialId: event.target.value }
                  : undefined,
              })
            }
          >
            <option value="">None</option>
            {credentials.data?.credentials.map(({ id, name }) => (
              <option key={id} value={id}>
                {name ? `${name} (${id})` : id}
              </option>
            ))}
          </Select>
        )}
      </Field>
      <Field label="Require approval">
        {(control) => (
          <Select
            {...control}
            value={approval(server.requireApproval)}
            onChange={(event) =>
              onChange({ ...server, requireApproval: event.target.value as 'always' | 'never' | 'unless_skill' })
            }
          >
            <option value="never">Never</option>
            <option value="always">Always</option>
            <option value="unless_skill">Unless a skill allows the tool</option>
            {Array.isArray(server.requireApproval) && (
              <option value="list">For {server.requireApproval.join(', ')}</option>
            )}
          </Select>
        )}
      </Field>
    </div>
  )
}

function approval(value: McpServer['requireApproval']): string {
  if (Array.isArray(value)) return 'list'
  if (typeof value === 'boolean') return value ? 'always' : 'never'
  return value ?? 'never'
}
