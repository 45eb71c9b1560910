/** The configuration form of agents and runs: model, parameters, tools, skills, MCP servers, network, limits. */
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { Policy } from '../api/types.gen.js'
import { serverQuery, skillsQuery } from '../server/queries.ts'
import { Badge } from '../ui/badge.tsx'
import { cx } from '../ui/cx.ts'
import { Check, Field, Input, Select, Textarea } from '../ui/field.tsx'
import { Icon } from '../ui/icon.tsx'
import { Loading } from '../ui/states.tsx'
import { McpFields } from './mcp-fields.tsx'
import { ParameterFields } from './parameter-fields.tsx'
import type { Settings } from './settings.ts'

const TOOLS: Record<string, string> = {
  code_execution: 'Runs Python, JavaScript and bash in the sandbox',
  file_read: 'Reads files, images and PDFs',
  file_write: 'Writes and edits files',
  web_search: 'Searches the web',
  browser: 'Controls Chromium in a separate sandbox',
}

interface FormProps {
  readonly value: Settings
  readonly onChange: (value: Settings) => void
}

export function SettingsForm({ value, onChange }: FormProps) {
  const set = (changes: Partial<Settings>) => onChange({ ...value, ...changes })
  const server = useQuery(serverQuery)
  if (!server.data) return <Loading rows={8} />
  const { models, defaultModel, tools } = server.data
  return (
    <div className="grid gap-5">
      <Field label="Model">
        {(control) => (
          <Select
            {...control}
            value={value.model || defaultModel}
            onChange={(event) => set({ model: event.target.value })}
          >
            {models.map(({ name, provider, demo, unavailable }) => (
              <option key={name} value={name} disabled={unavailable !== undefined}>
                {name}
                {demo ? ' · built-in demo' : unavailable ? ' · unavailable' : ` · ${provider}`}
              </option>
            ))}
          </Select>
        )}
      </Field>
      <Field label="System instruction" optional>
        {(control) => (
          <Textarea
            {...control}
            rows={4}
            value={value.systemInstruction}
            placeholder="You are a careful analyst. Answer in one sentence."
            onChange={(event) => set({ systemInstruction: event.target.value })}
          />
        )}
      </Field>
      <fieldset className="grid gap-2.5">
        <legend className="mb-1 text-small font-medium">Tools</legend>
        {tools.available.map((name) => (
          <Check
            key={name}
            label={<code className="text-small">{name}</code>}
            hint={TOOLS[name]}
            checked={value.tools.includes(name)}
            onChange={() => set({ tools: toggled(value.tools, name) })}
          />
        ))}
        {tools.missing.map(({ name, remedy }) => (
          <Check
            key={name}
            label={<code className="text-small text-faint">{name}</code>}
            hint={remedy.replaceAll('`', '')}
            disabled
            checked={false}
            readOnly
          />
        ))}
      </fieldset>
      <Section title="Skills" count={value.skills.length}>
        <SkillFields value={value} onChange={onChange} />
      </Section>
      <Section title="MCP servers" count={value.mcp.length}>
        <McpFields servers={value.mcp} onChange={(mcp) => set({ mcp })} />
      </Section>
      <Section
        title="Network"
        count={value.network === 'disabled' ? 0 : value.network === 'public' ? 'public' : value.network.allow.length}
      >
        <NetworkFields value={value.network} onChange={(network) => set({ network })} />
      </Section>
      <Section title="Model parameters" count={Object.keys(value.parameters).length}>
        <ParameterFields value={value.parameters} onChange={(parameters) => set({ parameters })} />
      </Section>
      <Section title="Limits" count={Object.keys(value.policy).length}>
        <PolicyFields value={value.policy} onChange={(policy) => set({ policy })} />
      </Section>
    </div>
  )
}

function toggled(list: readonly string[], name: string): readonly string[] {
  return list.includes(name) ? list.filter((each) => each !== name) : [...list, name]
}

/** A collapsible section. The badge shows whether it has any entries. */
function Section({
  title,
  count,
  children,
}: {
  readonly title: string
  readonly count: number | string
  readonly children: ReactNode
}) {
  return (
    <details className="group border-t pt-4" open={count !== 0}>
      <summary className="flex list-none items-center gap-2 text-small font-medium [&::-webkit-details-marker]:hidden">
        <Icon name="right" className="text-faint transition-transform group-open:rotate-90" />
        {title}
        {count !== 0 && <Badge tone="accent">{count}</Badge>}
      </summary>
      <div className="mt-3 grid gap-3">{children}</div>
    </details>
  )
}

function SkillFields({ value, onChange }: FormProps) {
  const skills = useQuery(skillsQuery)
  const offered = skills.data?.skills ?? []
  // Also shows pinned versions and skills that no longer exist.
  const others = value.skills.filter((ref) => !offered.some(({ name }) => name === ref))
  if (offered.length + others.length === 0)
    return <p className="text-small text-faint">No skills yet. Upload one under Settings, Skills.</p>
  return (
    <>
      {offered.map(({ name, description }) => (
        <Check
          key={name}
          label={name}
          hint={<span className="line-clamp-2">{description}</span>}
          checked={value.skills.includes(name)}
          onChange={() => onChange({ ...value, skills: toggled(value.skills, name) })}
        />
      ))}
      {others.map((ref) => (
        <Check
          key={ref}
          label={ref}
          checked
          onChange={() => onChange({ ...value, skills: toggled(value.skills, ref) })}
        />
      ))}
    </>
  )
}

function NetworkFields({
  value,
  onChange,
}: {
  readonly value: Settings['network']
  readonly onChange: (value: Settings['network']) => void
}) {
  const kind = typeof value === 'string' ? value : 'allow'
  return (
    <>
      <Field label="Network access">
        {(control) => (
          <Select
            {...control}
            value={kind}
            onChange={(event) =>
              onChange(event.target.value === 'allow' ? { allow: [] } : (event.target.value as 'disabled' | 'public'))
            }
          >
            <option value="disabled">None</option>
            <option value="allow">Allowed hosts only</option>
            <option value="public">Public internet</option>
          </Select>
        )}
      </Field>
      {typeof value === 'object' && (
        <Field label="Allowed hosts" hint="One per line, such as pypi.org or *.pythonhosted.org">
          {(control) => (
            <Textarea
              {...control}
              rows={3}
              className="font-mono !text-small"
              defaultValue={value.allow.join('\n')}
              onChange={(event) => onChange({ ...value, allow: event.target.value.split(/[\s,]+/).filter(Boolean) })}
            />
          )}
        </Field>
      )}
    </>
  )
}

function PolicyFields({ value, onChange }: { readonly value: Policy; readonly onChange: (value: Policy) => void }) {
  const { data: server } = useQuery(serverQuery)
  if (!server) return null
  const { maxTurnDuration, maxOutputTokens, maxToolDuration } = server.limits
  const rows = [
    ['maxTurnDuration', 'Run timeout', 'seconds', maxTurnDuration],
    ['maxToolDuration', 'Tool call timeout', 'seconds', maxToolDuration],
    ['maxOutputTokens', 'Output tokens', 'tokens', maxOutputTokens],
    ['maxCost', 'Cost', 'US dollars', undefined],
  ] as const
  return (
    <div className="grid grid-cols-2 gap-3">
      {rows.map(([name, label, unit, range]) => (
        <Field key={name} label={label} hint={unit}>
          {(control) => (
            <Input
              {...control}
              type="number"
              inputMode="decimal"
              min={range?.min ?? 0}
              max={range?.max}
              step={name === 'maxCost' ? 'any' : 1}
              placeholder={range ? String(range.default) : 'No limit'}
              value={value[name] ?? ''}
              className={cx('tabular-nums')}
              onChange={(event) => {
                const { [name]: _, ...rest } = value
                onChange(event.target.value === '' ? rest : { ...rest, [name]: Number(event.target.value) })
              }}
            />
          )}
        </Field>
      ))}
    </div>
  )
}
