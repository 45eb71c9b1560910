/** Credentials of the project: create, replace, delete. Secrets can't be read back. */
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
      Add credential
    </Button>
  )
  return (
    <Page
      narrow
      title="Credentials"
      about="Stored encrypted and added to requests by the server. Runs, traces and logs never contain them."
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
            For MCP servers that require sign-in, and for hosts that a run’s code calls.
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
      toast('Credential deleted')
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
        <Menu trigger={<IconButton icon="more" label={`More actions for ${name ?? id}`} />}>
          {(type === 'bearer' || type === 'basic') && (
            <MenuItem icon="edit" onSelect={onReplace}>
              Replace secret
            </MenuItem>
          )}
          <MenuItem
            icon="trash"
            danger
            onSelect={() =>
              confirm(`Delete the credential ${name ?? id}? Runs that use it can no longer sign in.`) && remove.mutate()
            }
          >
            Delete
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
  const secretName = { bearer: 'Token', basic: 'Password', headers: 'Header value' }[kind]
  return (
    <Modal
      open
      onClose={onClose}
      title={stored ? `Replace the secret of ${stored.name ?? stored.id}` : 'Add credential'}
      about="The secret can be used and replaced, but not read again."
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
          <NewCredentialFields id={id} setId={setId} kind={kind} setKind={setKind} hosts={hosts} setHosts={setHosts} />
        )}
        {kind !== 'bearer' && (
          <Field label={kind === 'basic' ? 'Username' : 'Header name'}>
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
            Create OAuth 2 credentials with <code>errand credentials add</code> or the API.
          </p>
        )}
      </form>
    </Modal>
  )
}

interface NewCredentialFieldsProps {
  readonly id: string
  readonly setId: (id: string) => void
  readonly kind: Kind
  readonly setKind: (kind: Kind) => void
  readonly hosts: string
  readonly setHosts: (hosts: string) => void
}

function NewCredentialFields({ id, setId, kind, setKind, hosts, setHosts }: NewCredentialFieldsProps) {
  return (
    <>
      <Field label="ID" optional hint="Used by agents and runs.">
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
      <Field label="Type">
        {(control) => (
          <Select {...control} value={kind} onChange={(event) => setKind(event.target.value as Kind)}>
            <option value="bearer">Bearer token</option>
            <option value="basic">Username and password</option>
            <option value="headers">HTTP header</option>
          </Select>
        )}
      </Field>
      <Field label="Allowed hosts" optional hint="Separate with commas. Leave empty to allow any host.">
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
  )
}
