/** The API keys of a project: create, rotate, revoke. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { ask, type Key, project as projectPath, type Scope } from '../server/console-api.ts'
import { Problem } from '../server/problem.ts'
import { keysQuery } from '../server/queries.ts'
import { useSession } from '../session/session.ts'
import { Page } from '../shell/page.tsx'
import { Badge } from '../ui/badge.tsx'
import { Button, IconButton } from '../ui/button.tsx'
import { ago, moment } from '../ui/format.ts'
import { Menu, MenuItem } from '../ui/overlay.tsx'
import { Empty, Failure, Loading } from '../ui/states.tsx'
import { toast } from '../ui/toast.tsx'
import { NewKeyDialog, RotateDialog } from './key-dialogs.tsx'

const SCOPES: Record<Scope, string> = { all: 'full access', invoke: 'run only', read: 'read only' }

export default function Keys() {
  const session = useSession()
  const projectId = session?.project?.id ?? ''
  const keys = useQuery({ ...keysQuery(projectId), enabled: projectId !== '' })
  const [making, setMaking] = useState(false)
  const [rotating, setRotating] = useState<Key>()
  if (!session) return null
  const mayChange = session.role !== 'viewer'
  const create = (
    <Button look="primary" icon="plus" disabled={!mayChange} onClick={() => setMaking(true)}>
      Create key
    </Button>
  )
  return (
    <Page
      narrow
      title="API keys"
      about={`Keys for API calls in the project ${session.project?.name ?? ''}.`}
      actions={create}
    >
      <div className="overflow-hidden rounded-xl border bg-card">
        {keys.error ? (
          <Failure error={keys.error} retry={() => keys.refetch()} />
        ) : !keys.data ? (
          <div className="px-4 py-3">
            <Loading />
          </div>
        ) : keys.data.keys.length === 0 ? (
          <Empty icon="key" title="No API keys yet" action={create}>
            A key is shown once, when it is created. The server stores only a hash of it.
          </Empty>
        ) : (
          <ul aria-label="Keys">
            {keys.data.keys.map((key) => (
              <KeyRow key={key.id} info={key} mayChange={mayChange} onRotate={() => setRotating(key)} />
            ))}
          </ul>
        )}
      </div>
      {making && <NewKeyDialog session={session} onClose={() => setMaking(false)} />}
      {rotating && <RotateDialog projectId={projectId} info={rotating} onClose={() => setRotating(undefined)} />}
    </Page>
  )
}

function KeyRow({
  info,
  mayChange,
  onRotate,
}: {
  readonly info: Key
  readonly mayChange: boolean
  readonly onRotate: () => void
}) {
  const cache = useQueryClient()
  const session = useSession()
  const revoke = useMutation({
    mutationFn: () => ask('DELETE', `${projectPath(session?.project?.id ?? '')}/keys/${info.id}`),
    onSuccess: () => {
      cache.invalidateQueries({ queryKey: ['keys'] })
      toast('Key revoked')
    },
    onError: (error) => toast(Problem.from(error).message, true),
  })
  const { name, prefix, scope, state, createTime, lastUsedTime, expireTime } = info
  return (
    <li className="flex items-center gap-4 border-t px-4 py-3 first:border-t-0">
      <div className="min-w-0 flex-1">
        <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span className={state === 'valid' ? 'font-medium' : 'font-medium text-soft line-through'}>{name}</span>
          {state !== 'valid' && <Badge tone="red">{state}</Badge>}
          <Badge>{SCOPES[scope]}</Badge>
        </p>
        <p className="mt-0.5 flex flex-wrap gap-x-3 text-small text-faint">
          <code>{prefix}…</code>
          <span title={moment(createTime)}>created {ago(createTime)}</span>
          <span>{lastUsedTime ? `last used ${ago(lastUsedTime)}` : 'never used'}</span>
          {expireTime && state === 'valid' && <span>expires {moment(expireTime)}</span>}
        </p>
      </div>
      {state === 'valid' && mayChange && (
        <Menu trigger={<IconButton icon="more" label={`More actions for ${name}`} />}>
          <MenuItem icon="retry" onSelect={onRotate}>
            Rotate
          </MenuItem>
          <MenuItem
            icon="trash"
            danger
            onSelect={() => confirm(`Revoke ${name}? API calls with this key fail immediately.`) && revoke.mutate()}
          >
            Revoke
          </MenuItem>
        </Menu>
      )}
    </li>
  )
}
