/** Account settings: experimental features and projects. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { account as accountPath, ask, type Project, project as projectPath } from '../../server/console-api.ts'
import { Problem } from '../../server/problem.ts'
import { meQuery, type Session, useSession } from '../../session/session.ts'
import { Card, Page } from '../../shell/page.tsx'
import { Button } from '../../ui/button.tsx'
import { Input, Switch } from '../../ui/field.tsx'
import { Skeleton } from '../../ui/states.tsx'
import { toast } from '../../ui/toast.tsx'

interface AccountSettings {
  readonly experimental: { readonly managedAgents: boolean }
}

export default function AccountPage() {
  const session = useSession()
  if (!session) return null
  return (
    <Page narrow title="Account" about={`${session.account.name}. Your role: ${session.role}.`}>
      <div className="grid gap-5">
        <Experimental session={session} />
        <Card flush title="Projects" about="Each project has its own agents, runs, keys, skills and credentials.">
          <ul>
            {session.account.projects.map((project) => (
              <ProjectRow key={project.id} project={project} mayRename={session.role !== 'viewer'} />
            ))}
          </ul>
        </Card>
      </div>
    </Page>
  )
}

function Experimental({ session }: { readonly session: Session }) {
  const cache = useQueryClient()
  const path = `${accountPath(session.account.id)}/settings`
  const settings = useQuery({ queryKey: ['account-settings', path], queryFn: () => ask<AccountSettings>('GET', path) })
  const change = useMutation({
    mutationFn: (managedAgents: boolean) => ask<AccountSettings>('PATCH', path, { experimental: { managedAgents } }),
    onSuccess: (saved) => {
      cache.setQueryData(['account-settings', path], saved)
      cache.invalidateQueries({ queryKey: meQuery.queryKey })
      toast(saved.experimental.managedAgents ? 'Managed agents enabled' : 'Managed agents disabled')
    },
    onError: (error) => toast(Problem.from(error).message, true),
  })
  return (
    <Card title="Experimental features">
      <div className="flex items-start gap-4">
        <div className="min-w-0 flex-1">
          <p className="font-medium">Managed agents</p>
          <p className="text-soft text-pretty">
            When disabled, API calls with keys of this account fail with status 403.
          </p>
          {session.role !== 'owner' && <p className="mt-1 text-small text-faint">Only owners can change this.</p>}
        </div>
        {settings.data ? (
          <Switch
            label="Managed agents"
            checked={settings.data.experimental.managedAgents}
            disabled={session.role !== 'owner' || change.isPending}
            onChange={(on) => change.mutate(on)}
          />
        ) : (
          <Skeleton className="h-5 w-9" />
        )}
      </div>
    </Card>
  )
}

function ProjectRow({ project, mayRename }: { readonly project: Project; readonly mayRename: boolean }) {
  const cache = useQueryClient()
  const [name, setName] = useState<string>()
  const rename = useMutation({
    mutationFn: () => ask('PATCH', projectPath(project.id), { name }),
    onSuccess: () => {
      cache.invalidateQueries({ queryKey: meQuery.queryKey })
      setName(undefined)
      toast('Project renamed')
    },
    onError: (error) => toast(Problem.from(error).message, true),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    rename.mutate()
  }
  return (
    <li className="flex min-h-12 items-center gap-3 border-t px-4 py-2">
      {name === undefined ? (
        <>
          <span className="min-w-0 flex-1 truncate font-medium">{project.name}</span>
          <code className="hidden text-small text-faint sm:block">{project.id}</code>
          {mayRename && (
            <Button size="small" look="ghost" icon="edit" onClick={() => setName(project.name)}>
              Rename
            </Button>
          )}
        </>
      ) : (
        <form onSubmit={submit} className="flex flex-1 gap-2">
          <Input
            aria-label="Project name"
            autoFocus
            required
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
          <Button type="submit" look="primary" busy={rename.isPending}>
            Save
          </Button>
          <Button onClick={() => setName(undefined)}>Cancel</Button>
        </form>
      )}
    </li>
  )
}
