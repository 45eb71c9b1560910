/** The project menu: the projects of all accounts of the user, and the dialog for a new one. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, type ReactNode, useState } from 'react'
import { account as accountPath, ask, type Project } from '../server/console-api.ts'
import { Problem } from '../server/problem.ts'
import { chooseProject, meQuery, type Session } from '../session/session.ts'
import { Button } from '../ui/button.tsx'
import { Field, Input } from '../ui/field.tsx'
import { Menu, MenuItem, MenuLabel, MenuRule, Modal } from '../ui/overlay.tsx'

export default function ProjectItems({ trigger, session }: { readonly trigger: ReactNode; readonly session: Session }) {
  const cache = useQueryClient()
  const [making, setMaking] = useState(false)
  const choose = (id: string) => {
    chooseProject(id)
    // Cached data belongs to the previous project.
    cache.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'me' && queryKey[0] !== 'server' })
  }
  return (
    <>
      <Menu align="start" opened trigger={trigger}>
        {session.me.accounts.map((account) => (
          <div key={account.id}>
            <MenuLabel>{account.name}</MenuLabel>
            {account.projects.map((project) => (
              <MenuItem
                key={project.id}
                checked={project.id === session.project?.id}
                onSelect={() => choose(project.id)}
              >
                {project.name}
              </MenuItem>
            ))}
          </div>
        ))}
        <MenuRule />
        <MenuItem icon="plus" disabled={session.role === 'viewer'} onSelect={() => setMaking(true)}>
          New project
        </MenuItem>
      </Menu>
      {making && <NewProject accountId={session.account.id} onMade={choose} onClose={() => setMaking(false)} />}
    </>
  )
}

function NewProject({
  accountId,
  onMade,
  onClose,
}: {
  readonly accountId: string
  readonly onMade: (id: string) => void
  readonly onClose: () => void
}) {
  const cache = useQueryClient()
  const [name, setName] = useState('')
  const create = useMutation({
    mutationFn: () => ask<Project>('POST', `${accountPath(accountId)}/projects`, { name }),
    onSuccess: async ({ id }) => {
      await cache.invalidateQueries({ queryKey: meQuery.queryKey })
      onMade(id)
      onClose()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    create.mutate()
  }
  return (
    <Modal
      open
      onClose={onClose}
      title="New project"
      about="A project has its own agents, runs, keys, skills and credentials."
    >
      <form onSubmit={submit} className="grid gap-4">
        <Field label="Name" error={create.error ? Problem.from(create.error).message : undefined}>
          {(control) => (
            <Input
              {...control}
              required
              autoFocus
              maxLength={128}
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        <div className="flex justify-end">
          <Button type="submit" look="primary" busy={create.isPending}>
            Create project
          </Button>
        </div>
      </form>
    </Modal>
  )
}
