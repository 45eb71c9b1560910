/** The form of an agent: its name and the configuration of its runs. */
import { type FormEvent, type ReactNode, useState } from 'react'
import { Problem } from '../server/problem.ts'
import { useMayChange } from '../session/session.ts'
import { Card } from '../shell/page.tsx'
import { Field, Input, Textarea } from '../ui/field.tsx'
import { Notice } from '../ui/states.tsx'
import type { Settings } from './settings.ts'
import { SettingsForm } from './settings-form.tsx'

export interface AgentDraft {
  readonly id: string
  readonly displayName: string
  readonly description: string
  readonly settings: Settings
}

interface AgentFormProps {
  readonly first: AgentDraft
  /** The agent exists: its id can't be changed. */
  readonly stored?: boolean
  readonly error: unknown
  readonly onSave: (draft: AgentDraft) => void
  readonly footer: (changed: boolean) => ReactNode
}

export function AgentForm({ first, stored, error, onSave, footer }: AgentFormProps) {
  const [draft, setDraft] = useState(first)
  const mayChange = useMayChange()
  const set = (changes: Partial<AgentDraft>) => setDraft({ ...draft, ...changes })
  const problem = error ? Problem.from(error) : undefined
  const wrong = (param: string) => (problem?.param === param ? problem.message : undefined)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onSave(draft)
  }
  return (
    <form onSubmit={submit}>
      <fieldset disabled={!mayChange} className="grid gap-5">
        <Card title="Name">
          <div className="grid gap-4 sm:grid-cols-2">
            <Field label="Display name" optional error={wrong('displayName')}>
              {(control) => (
                <Input
                  {...control}
                  value={draft.displayName}
                  placeholder="Sales analyst"
                  onChange={(event) => set({ displayName: event.target.value })}
                />
              )}
            </Field>
            {!stored && (
              <Field label="ID" optional hint="Used in API calls. Leave empty to generate one." error={wrong('id')}>
                {(control) => (
                  <Input
                    {...control}
                    value={draft.id}
                    placeholder="sales-analyst"
                    className="font-mono"
                    onChange={(event) => set({ id: event.target.value })}
                  />
                )}
              </Field>
            )}
            <Field label="Description" optional className="sm:col-span-2" error={wrong('description')}>
              {(control) => (
                <Textarea
                  {...control}
                  rows={2}
                  value={draft.description}
                  onChange={(event) => set({ description: event.target.value })}
                />
              )}
            </Field>
          </div>
        </Card>
        <Card title="Configuration">
          <SettingsForm value={draft.settings} onChange={(settings) => set({ settings })} />
        </Card>
        {problem && !['id', 'displayName', 'description'].includes(problem.param ?? '') && (
          <Notice tone="red" title={problem.param ? `Not saved: ${problem.param}` : 'Not saved'}>
            {problem.message}
          </Notice>
        )}
        <div className="sticky bottom-0 flex justify-end gap-2 border-t bg-ground py-3">
          {footer(JSON.stringify(draft) !== JSON.stringify(first))}
        </div>
      </fieldset>
    </form>
  )
}
