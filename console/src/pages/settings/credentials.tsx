/** Secrets that runs sign in with: written here, used by their ids, never read back. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useId, useState } from 'react'
import { createCredential, deleteCredential, updateCredential } from '../../api/sdk.gen.js'
import type { Credential, NewCredential } from '../../api/types.gen.js'
import { Problem } from '../../server/problem.ts'
import { credentialsQuery } from '../../server/queries.ts'
import { useMayChange } from '../../session/session.ts'
import { Page } from '../../shell/page.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button, IconButton } from '../../ui/button.tsx'
import { Field, Input, Select } from '../../ui/field.tsx'
import { ago } from '../../ui/format.ts'
import { Menu, MenuItem, Modal } from '../../ui/overlay.tsx'
import { Empty, Failure, Loading, Notice } from '../../ui/states.tsx'
import { toast } from '../../ui/toast.tsx'

export default function Credentials() {
  const credentials = useQuery(credentialsQuery)
  const [editing, setEditing] = useState<Credential | 'new'>()
  const mayChange = useMayChange()
  const button = mayChange && (
    <Button look="primary" icon="plus" onClick={() => setEditing('new')}>
      Add a credential
    </Button>
  )
  return (
    <Page
      narrow
      title="Credentials"
      about="Kept encrypted, put in by the server on the way out. No run, trace or log ever holds one."
      actions={button}
    >
      <div className="overflow-hidden rounded-xl border bg-card">
        {credentials.error ? (
          <Failure error={credentials.error} retry={() => credentials.refetch()} />
        ) : !credentials.data ? (
          <div className="px-4 py-3">
            <Loading />
          </div>
        ) : credentials.data.credentials.length === 0 ? (
          <Empty icon="shield" title="No credentials yet" action={button}>
            For MCP servers that ask for a sign-in, and for hosts that a run’s programs call.
          </Empty>
        ) : (
          <ul aria-label="Credentials">
            {credentials.data.credentials.map((credential) => (
              <Row key={credential.id} credential={credential} onReplace={() => setEditing(credential)} />
            ))}
          </ul>
        )}
      </div>
      {editing && (
        <CredentialDialog stored={editing === 'new' ? undefined : editing} onClose={() => setEditing(undefined)} />
      )}
    </Page>
  )
}

function Row({ credential, onReplace }: { readonly credential: Credential; readonly onReplace: () => void }) {
  const cache = useQueryClient()
  const { id, name, type, allowedHosts, lastUsedTime } = credential
  const mayChange = useMayChange()
  const remove = useMutation({
    mutationFn: () => deleteCredential({ path: { id } }),
    onSuccess: () => {
      cache.invalidateQueries({ queryKey: ['credentials'] })
      toast('Forgotten')
    },
    onError: (error) => toast(Problem.from(error).message, true),
  })
  return (
    <li className="flex items-center gap-4 border-t px-4 py-3 first:border-t-0">
      <div className="min-w-0 flex-1">
        <p className="flex items-center gap-2">
          <span className="truncate font-medium">{name ?? id}</span>
          <Badge>{type}</Badge>
        </p>
        <p className="mt-0.5 flex flex-wrap gap-x-3 text-small text-faint">
          <code>{id}</code>
          <span>{allowedHosts ? `for ${allowedHosts.join(', ')}` : 'for any host'}</span>
          <span>{lastUsedTime ? `last used ${ago(lastUsedTime)}` : 'never used'}</span>
        </p>
      </div>
      {mayChange && (
        <Menu trigger={<IconButton icon="more" label={`More for ${name ?? id}`} />}>
          {(type === 'bearer' || type === 'basic') && (
            <MenuItem icon="edit" onSelect={onReplace}>
              Replace the secret
            </MenuItem>
          )}
          <MenuItem
            icon="trash"
            danger
            onSelect={() =>
              confirm(`Forget ${name ?? id}? Runs that name it can’t sign in any more.`) && remove.mutate()
            }
          >
            Forget
          </MenuItem>
        </Menu>
      )}
    </li>
  )
}

type Kind = 'bearer' | 'basic' | 'headers'

function CredentialDialog({
  stored,
  onClose,
}: {
  readonly stored: Credential | undefined
  readonly onClose: () => void
}) {
  const cache = useQueryClient()
  const form = useId()
  const [id, setId] = useState('')
  const [kind, setKind] = useState<Kind>((stored?.type as Kind | undefined) ?? 'bearer')
  const [hosts, setHosts] = useState('')
  const [first, setFirst] = useState('')
  const [secret, setSecret] = useState('')
  const save = useMutation({
    mutationFn: async () => {
      const parts =
        kind === 'bearer'
          ? { token: secret }
          : kind === 'basic'
            ? { username: first, password: secret }
            : { headers: { [first]: secret } }
      if (stored) return updateCredential({ path: { id: stored.id }, body: parts as object })
      const allowedHosts = hosts.split(/[\s,]+/).filter(Boolean)
      return createCredential({
        body: {
          type: kind,
          ...(id && { id }),
          ...(allowedHosts.length > 0 && { allowedHosts }),
          ...parts,
        } as NewCredential,
      })
    },
    onSuccess: () => {
      cache.invalidateQueries({ queryKey: ['credentials'] })
      toast('Saved')
      onClose()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  const secretName = { bearer: 'Token', basic: 'Password', headers: 'Value' }[kind]
  return (
    <Modal
      open
      onClose={onClose}
      title={stored ? `Replace the secret of ${stored.name ?? stored.id}` : 'Add a credential'}
      about="It can be used and replaced, and never read again."
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" form={form} look="primary" busy={save.isPending}>
            Save
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={submit} className="grid gap-4">
        {!stored && (
          <>
            <Field label="Id" optional hint="How agents and runs name it.">
              {(control) => (
                <Input
                  {...control}
                  value={id}
                  placeholder="tracker"
                  className="font-mono"
                  onChange={(event) => setId(event.target.value)}
                />
              )}
            </Field>
            <Field label="Kind">
              {(control) => (
                <Select {...control} value={kind} onChange={(event) => setKind(event.target.value as Kind)}>
                  <option value="bearer">Bearer token</option>
                  <option value="basic">User name and password</option>
                  <option value="headers">A header</option>
                </Select>
              )}
            </Field>
            <Field label="Hosts it may go to" optional hint="By comma; empty: any that a run may reach.">
              {(control) => (
                <Input
                  {...control}
                  value={hosts}
                  placeholder="api.example.com"
                  onChange={(event) => setHosts(event.target.value)}
                />
              )}
            </Field>
          </>
        )}
        {kind !== 'bearer' && (
          <Field label={kind === 'basic' ? 'User name' : 'Header'}>
            {(control) => (
              <Input {...control} required value={first} onChange={(event) => setFirst(event.target.value)} />
            )}
          </Field>
        )}
        <Field label={secretName}>
          {(control) => (
            <Input
              {...control}
              type="password"
              autoComplete="new-password"
              required
              value={secret}
              onChange={(event) => setSecret(event.target.value)}
            />
          )}
        </Field>
        {save.error && <Notice tone="red">{Problem.from(save.error).message}</Notice>}
        {!stored && (
          <p className="text-small text-faint">
            OAuth 2 credentials are made with <code>errand credentials add</code> or the API.
          </p>
        )}
      </form>
    </Modal>
  )
}
