/** The members of the account, their roles, and open invitations. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { account as accountPath, ask, type Invite, type Member, type Role } from '../../server/console-api.ts'
import { Problem } from '../../server/problem.ts'
import { type Session, useSession } from '../../session/session.ts'
import { Card, Page } from '../../shell/page.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button, IconButton } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy.tsx'
import { Field, Select } from '../../ui/field.tsx'
import { ago, moment } from '../../ui/format.ts'
import { Menu, MenuItem, MenuLabel, MenuRule, Modal } from '../../ui/overlay.tsx'
import { Failure, Loading, Notice } from '../../ui/states.tsx'
import { toast } from '../../ui/toast.tsx'

const ROLES: Record<Role, string> = {
  owner: 'Full access, including members and account settings',
  developer: 'Manages projects, keys, agents and runs',
  viewer: 'Read-only access',
}

export default function Members() {
  const session = useSession()
  return session ? <MemberList session={session} /> : null
}

function MemberList({ session }: { readonly session: Session }) {
  const path = accountPath(session.account.id)
  const members = useQuery({
    queryKey: ['members', path],
    queryFn: () => ask<{ members: Member[]; invites: Invite[] }>('GET', `${path}/members`),
  })
  const [inviting, setInviting] = useState(false)
  const [link, setLink] = useState<string>()
  const owner = session.role === 'owner'
  return (
    <Page
      narrow
      title="Members"
      about={`Members of ${session.account.name}.`}
      actions={
        owner && (
          <Button look="primary" icon="plus" onClick={() => setInviting(true)}>
            Invite member
          </Button>
        )
      }
    >
      {members.error ? (
        <Failure error={members.error} retry={() => members.refetch()} />
      ) : !members.data ? (
        <Loading />
      ) : (
        <div className="grid gap-5">
          <Card flush>
            <ul aria-label="Members">
              {members.data.members.map((member) => (
                <MemberRow
                  key={member.userId}
                  path={path}
                  member={member}
                  owner={owner}
                  you={member.userId === session.me.user.id}
                  onLink={setLink}
                />
              ))}
            </ul>
          </Card>
          {members.data.invites.length > 0 && (
            <Card flush title="Invitations">
              <ul aria-label="Invitations">
                {members.data.invites.map((invite) => (
                  <InviteRow key={invite.id} path={path} invite={invite} owner={owner} />
                ))}
              </ul>
            </Card>
          )}
        </div>
      )}
      {inviting && <InviteDialog path={path} onMade={setLink} onClose={() => setInviting(false)} />}
      {link && <LinkDialog link={link} onClose={() => setLink(undefined)} />}
    </Page>
  )
}

function useMemberChange(message: string) {
  const cache = useQueryClient()
  return useMutation({
    mutationFn: (call: () => Promise<unknown>) => call(),
    onSuccess: () => {
      cache.invalidateQueries({ queryKey: ['members'] })
      toast(message)
    },
    onError: (error) => toast(Problem.from(error).message, true),
  })
}

interface MemberRowProps {
  readonly path: string
  readonly member: Member
  readonly owner: boolean
  readonly you: boolean
  readonly onLink: (link: string) => void
}

function MemberRow({ path, member, owner, you, onLink }: MemberRowProps) {
  const change = useMemberChange('Member updated')
  const at = `${path}/members/${member.userId}`
  const reset = () =>
    ask<{ link: string }>('POST', `${at}/reset-link`).then(
      ({ link }) => onLink(link),
      (error) => toast(Problem.from(error).message, true),
    )
  return (
    <li className="flex items-center gap-4 border-t px-4 py-3 first:border-t-0">
      <span
        aria-hidden="true"
        className="grid size-8 place-items-center rounded-full bg-accent-soft font-semibold text-accent"
      >
        {member.name.slice(0, 1).toUpperCase()}
      </span>
      <div className="min-w-0 flex-1">
        <p className="truncate font-medium">
          {member.name} {you && <span className="font-normal text-faint">(you)</span>}
        </p>
        <p className="truncate text-small text-soft">{member.email}</p>
      </div>
      <span className="hidden text-small text-faint sm:block">joined {ago(member.joinTime)}</span>
      <Badge tone={member.role === 'owner' ? 'accent' : 'plain'}>{member.role}</Badge>
      {owner && (
        <Menu trigger={<IconButton icon="more" label={`More actions for ${member.name}`} />}>
          <MenuLabel>Role</MenuLabel>
          {(Object.keys(ROLES) as Role[]).map((role) => (
            <MenuItem
              key={role}
              checked={role === member.role}
              onSelect={() => role !== member.role && change.mutate(() => ask('PATCH', at, { role }))}
            >
              {role}
            </MenuItem>
          ))}
          <MenuRule />
          <MenuItem icon="link" onSelect={reset}>
            Create password reset link
          </MenuItem>
          <MenuItem
            icon="trash"
            danger
            onSelect={() =>
              confirm(`Remove ${member.name} from the account?`) && change.mutate(() => ask('DELETE', at))
            }
          >
            Remove
          </MenuItem>
        </Menu>
      )}
    </li>
  )
}

function InviteRow({
  path,
  invite,
  owner,
}: {
  readonly path: string
  readonly invite: Invite
  readonly owner: boolean
}) {
  const revoke = useMemberChange('Invitation revoked')
  return (
    <li className="flex items-center gap-4 border-t px-4 py-2.5">
      <Badge>{invite.role}</Badge>
      <span className="min-w-0 flex-1 text-soft">expires {moment(invite.expireTime)}</span>
      {owner && (
        <Button
          size="small"
          look="ghost"
          busy={revoke.isPending}
          onClick={() => revoke.mutate(() => ask('DELETE', `${path}/invites/${invite.id}`))}
        >
          Revoke
        </Button>
      )}
    </li>
  )
}

function InviteDialog({
  path,
  onMade,
  onClose,
}: {
  readonly path: string
  readonly onMade: (link: string) => void
  readonly onClose: () => void
}) {
  const cache = useQueryClient()
  const [role, setRole] = useState<Role>('developer')
  const invite = useMutation({
    mutationFn: () => ask<{ link: string }>('POST', `${path}/invites`, { role }),
    onSuccess: ({ link }) => {
      cache.invalidateQueries({ queryKey: ['members'] })
      onClose()
      onMade(link)
    },
  })
  return (
    <Modal
      open
      onClose={onClose}
      title="Invite member"
      about="Creates a link that works once. The server sends no email: send the link yourself."
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" busy={invite.isPending} onClick={() => invite.mutate()}>
            Create link
          </Button>
        </>
      }
    >
      <div className="grid gap-3">
        <Field label="Role" hint={ROLES[role]}>
          {(control) => (
            <Select {...control} value={role} onChange={(event) => setRole(event.target.value as Role)}>
              {(Object.keys(ROLES) as Role[]).map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </Select>
          )}
        </Field>
        {invite.error && <Notice tone="red">{Problem.from(invite.error).message}</Notice>}
      </div>
    </Modal>
  )
}

function LinkDialog({ link, onClose }: { readonly link: string; readonly onClose: () => void }) {
  return (
    <Modal
      open
      onClose={onClose}
      title="Link"
      about="The link is shown once and works once."
      actions={
        <CopyButton text={link} look="primary">
          Copy link
        </CopyButton>
      }
    >
      <output
        aria-label="Link"
        className="block rounded-lg border bg-code p-3 font-mono text-small break-all select-all"
      >
        {link}
      </output>
    </Modal>
  )
}
