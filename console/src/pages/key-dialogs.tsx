/** The dialogs that create and rotate an API key, and show the new key once. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useId, useState } from 'react'
import {
  account as accountPath,
  ask,
  type Key,
  type Project,
  project as projectPath,
  type Scope,
} from '../server/console-api.ts'
import { Problem } from '../server/problem.ts'
import { chooseProject, meQuery, type Session } from '../session/session.ts'
import { Button } from '../ui/button.tsx'
import { CopyButton } from '../ui/copy.tsx'
import { Field, Input, Select } from '../ui/field.tsx'
import { Modal } from '../ui/overlay.tsx'
import { Notice } from '../ui/states.tsx'

interface Made {
  readonly key: string
  readonly info: Key
}

const NEW = 'new'
const DAY_MS = 86_400_000

export function NewKeyDialog({ session, onClose }: { readonly session: Session; readonly onClose: () => void }) {
  const cache = useQueryClient()
  const form = useId()
  const [name, setName] = useState('')
  const [scope, setScope] = useState<Scope>('all')
  const [days, setDays] = useState('')
  const [projectId, setProjectId] = useState(session.project?.id ?? NEW)
  const [projectName, setProjectName] = useState('')
  const create = useMutation({
    mutationFn: async () => {
      const target =
        projectId === NEW
          ? (await ask<Project>('POST', `${accountPath(session.account.id)}/projects`, { name: projectName })).id
          : projectId
      const expireTime = days === '' ? undefined : new Date(Date.now() + Number(days) * DAY_MS).toISOString()
      return { target, made: await ask<Made>('POST', `${projectPath(target)}/keys`, { name, scope, expireTime }) }
    },
    onSuccess: () => cache.invalidateQueries({ queryKey: ['keys'] }),
  })
  if (create.data) {
    const { target, made } = create.data
    // Switching to the new project closes this dialog, so it waits until the key was shown.
    const done = async () => {
      await cache.invalidateQueries({ queryKey: meQuery.queryKey })
      onClose()
      chooseProject(target)
    }
    return <NewKey made={made} onClose={done} />
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    create.mutate()
  }
  return (
    <Modal
      open
      onClose={onClose}
      title="Create key"
      about="The key is shown once, after it is created."
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" form={form} look="primary" busy={create.isPending}>
            Create key
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={submit} className="grid gap-4">
        <Field label="Name" hint="What the key is used for.">
          {(control) => (
            <Input
              {...control}
              required
              autoFocus
              maxLength={128}
              value={name}
              placeholder="Nightly report"
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        <Field label="Project">
          {(control) => (
            <Select {...control} value={projectId} onChange={(event) => setProjectId(event.target.value)}>
              {session.account.projects.map((project) => (
                <option key={project.id} value={project.id}>
                  {project.name}
                </option>
              ))}
              <option value={NEW}>New project…</option>
            </Select>
          )}
        </Field>
        {projectId === NEW && (
          <Field label="Project name">
            {(control) => (
              <Input
                {...control}
                required
                maxLength={128}
                value={projectName}
                onChange={(event) => setProjectName(event.target.value)}
              />
            )}
          </Field>
        )}
        <div className="grid grid-cols-2 gap-4">
          <Field label="Scope">
            {(control) => (
              <Select {...control} value={scope} onChange={(event) => setScope(event.target.value as Scope)}>
                <option value="all">Full access</option>
                <option value="invoke">Run agents only</option>
                <option value="read">Read only</option>
              </Select>
            )}
          </Field>
          <Field label="Expires">
            {(control) => (
              <Select {...control} value={days} onChange={(event) => setDays(event.target.value)}>
                <option value="">Never</option>
                <option value="7">In 7 days</option>
                <option value="30">In 30 days</option>
                <option value="90">In 90 days</option>
                <option value="365">In 1 year</option>
              </Select>
            )}
          </Field>
        </div>
        {create.error && <Notice tone="red">{Problem.from(create.error).message}</Notice>}
      </form>
    </Modal>
  )
}

function NewKey({ made, onClose }: { readonly made: Made; readonly onClose: () => void }) {
  return (
    <Modal
      open
      onClose={onClose}
      title="Your new key"
      about="Copy the key now. The server stores only a hash and can’t show it again."
      actions={
        <Button look="primary" onClick={onClose}>
          Done
        </Button>
      }
    >
      <div className="grid gap-3">
        <output
          aria-label="API key"
          className="block rounded-lg border bg-code p-3 font-mono text-small break-all select-all"
        >
          {made.key}
        </output>
        <div>
          <CopyButton text={made.key}>Copy key</CopyButton>
        </div>
      </div>
    </Modal>
  )
}

export function RotateDialog({
  projectId,
  info,
  onClose,
}: {
  readonly projectId: string
  readonly info: Key
  readonly onClose: () => void
}) {
  const cache = useQueryClient()
  const [hours, setHours] = useState('24')
  const rotate = useMutation({
    mutationFn: () =>
      ask<Made>('POST', `${projectPath(projectId)}/keys/${info.id}/rotate`, { overlapHours: Number(hours) }),
    onSuccess: () => cache.invalidateQueries({ queryKey: ['keys'] }),
  })
  if (rotate.data) return <NewKey made={rotate.data} onClose={onClose} />
  return (
    <Modal
      open
      onClose={onClose}
      title={`Rotate ${info.name}`}
      about="Creates a new key. The old key keeps working for the time you choose."
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" busy={rotate.isPending} onClick={() => rotate.mutate()}>
            Rotate key
          </Button>
        </>
      }
    >
      <div className="grid gap-3">
        <Field label="Old key expires">
          {(control) => (
            <Select {...control} value={hours} onChange={(event) => setHours(event.target.value)}>
              <option value="0">Immediately</option>
              <option value="1">In 1 hour</option>
              <option value="24">In 24 hours</option>
              <option value="168">In 7 days</option>
              <option value="720">In 30 days</option>
            </Select>
          )}
        </Field>
        {rotate.error && <Notice tone="red">{Problem.from(rotate.error).message}</Notice>}
      </div>
    </Modal>
  )
}
