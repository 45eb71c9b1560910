/** The user's profile: sessions and password. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { ask, type Session } from '../../server/console-api.ts'
import { Problem } from '../../server/problem.ts'
import { useSession } from '../../session/session.ts'
import { Card, Page } from '../../shell/page.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Field, Input } from '../../ui/field.tsx'
import { ago } from '../../ui/format.ts'
import { Failure, Loading, Notice } from '../../ui/states.tsx'
import { toast } from '../../ui/toast.tsx'

export default function You() {
  const session = useSession()
  if (!session) return null
  const { name, email } = session.me.user
  return (
    <Page narrow title={name} about={email}>
      <div className="grid gap-5">
        <Sessions />
        <Password email={email} />
      </div>
    </Page>
  )
}

function Sessions() {
  const cache = useQueryClient()
  const sessions = useQuery({
    queryKey: ['sessions'],
    queryFn: () => ask<{ sessions: Session[] }>('GET', '/api/sessions'),
  })
  const end = useMutation({
    mutationFn: (id: string | undefined) =>
      id ? ask('DELETE', `/api/sessions/${encodeURIComponent(id)}`) : ask('POST', '/api/sessions/revoke-others', {}),
    onSuccess: () => {
      cache.invalidateQueries({ queryKey: ['sessions'] })
      toast('Session ended')
    },
    onError: (error) => toast(Problem.from(error).message, true),
  })
  const others = sessions.data?.sessions.some(({ current }) => !current)
  return (
    <Card
      flush
      title="Sessions"
      actions={
        others && (
          <Button size="small" busy={end.isPending} onClick={() => end.mutate(undefined)}>
            Sign out all other sessions
          </Button>
        )
      }
    >
      {sessions.error ? (
        <Failure error={sessions.error} retry={() => sessions.refetch()} />
      ) : !sessions.data ? (
        <div className="px-4 pb-3">
          <Loading rows={3} />
        </div>
      ) : (
        <ul aria-label="Sessions">
          {sessions.data.sessions.map(({ id, current, lastUsedTime, ipAddress, userAgent }) => (
            <li key={id} className="flex items-center gap-4 border-t px-4 py-2.5">
              <div className="min-w-0 flex-1">
                <p className="truncate">{device(userAgent)}</p>
                <p className="text-small text-faint">
                  {ipAddress ?? 'Unknown address'}, last used {ago(lastUsedTime)}
                </p>
              </div>
              {current ? (
                <Badge tone="green">current</Badge>
              ) : (
                <Button size="small" look="ghost" onClick={() => end.mutate(id)}>
                  Sign out
                </Button>
              )}
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}

/** `Firefox on Linux`, as far as the user agent shows it. */
function device(userAgent: string | null): string {
  if (!userAgent) return 'Unknown browser'
  const browser = /(Firefox|Edg|Chrome|Safari)\//.exec(userAgent)?.[1]?.replace('Edg', 'Edge') ?? 'Unknown browser'
  const system =
    /(Windows|Macintosh|iPhone|iPad|Android|Linux)/.exec(userAgent)?.[1]?.replace('Macintosh', 'Mac') ??
    'unknown system'
  return `${browser} on ${system}`
}

function Password({ email }: { readonly email: string }) {
  const [currentPassword, setCurrent] = useState('')
  const [newPassword, setNew] = useState('')
  const change = useMutation({
    mutationFn: () => ask('POST', '/api/me/password', { currentPassword, newPassword }),
    onSuccess: () => {
      setCurrent('')
      setNew('')
      toast('Password changed. All other sessions are signed out.')
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    change.mutate()
  }
  return (
    <Card title="Password">
      <form onSubmit={submit} className="grid max-w-sm gap-4">
        {/* Shows password managers which user the password belongs to. */}
        <input className="hidden" aria-hidden="true" tabIndex={-1} autoComplete="username" value={email} readOnly />
        <Field label="Current password">
          {(control) => (
            <Input
              {...control}
              type="password"
              autoComplete="current-password"
              required
              value={currentPassword}
              onChange={(event) => setCurrent(event.target.value)}
            />
          )}
        </Field>
        <Field label="New password" hint="At least 12 characters. Signs out all other sessions.">
          {(control) => (
            <Input
              {...control}
              type="password"
              autoComplete="new-password"
              required
              minLength={12}
              value={newPassword}
              onChange={(event) => setNew(event.target.value)}
            />
          )}
        </Field>
        {change.error && <Notice tone="red">{Problem.from(change.error).message}</Notice>}
        <div>
          <Button type="submit" busy={change.isPending}>
            Change password
          </Button>
        </div>
      </form>
    </Card>
  )
}
