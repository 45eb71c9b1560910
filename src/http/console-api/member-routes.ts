/** Members of an account, invitations, and links to reset a member's password. */
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { type Link, pathOfLink } from '../../accounts/links.ts'
import type { Member } from '../../accounts/members.ts'
import { ErrandError } from '../../domain/errors.ts'
import { forSession } from '../openapi/route-docs.ts'
import { check } from '../request/fields.ts'
import { rfc3339 } from '../wire/time.ts'
import { ACCOUNT, type ConsoleDependencies, memberOf } from './dependencies.ts'
import { accountParams, invite, member, oneTimeLink, role } from './schemas.ts'

const withRole = z.object({ role })
const memberParams = z.object({ accountId: z.string(), userId: z.string() })
const inviteParams = z.object({ accountId: z.string(), inviteId: z.string() })
const done = z.object({})

type OfAccount = { Params: z.infer<typeof accountParams> }
type OfMember = { Params: z.infer<typeof memberParams> }

const reads = { console: 'session' } as const
const writes = { console: 'session', json: true } as const

const shared = { tag: 'Console', params: accountParams, errors: ['not_found'] } as const

export function memberRoutes(app: FastifyInstance, dependencies: ConsoleDependencies): void {
  const { members, links } = dependencies.accounts

  app.get<OfAccount>(
    `${ACCOUNT}/members`,
    {
      config: reads,
      schema: forSession({
        ...shared,
        id: 'listMembers',
        summary: 'List members',
        description: 'Lists the account’s members and its unused invitations.',
        answer: z.object({ members: z.array(member), invites: z.array(invite) }),
      }),
    },
    async (request) => {
      const { accountId } = await memberOf(dependencies, request, request.params.accountId, 'viewer')
      const [listed, invites] = await Promise.all([members.list(accountId), links.invites(accountId)])
      return { members: listed.map(showMember), invites: invites.map(showInvite) }
    },
  )

  app.patch<OfMember>(
    `${ACCOUNT}/members/:userId`,
    {
      config: writes,
      schema: forSession({
        ...shared,
        id: 'changeMember',
        params: memberParams,
        summary: 'Change a member’s role',
        description: 'Requires the role owner. Returns 409 for the last owner.',
        body: withRole,
        answer: member,
        errors: ['not_found', 'conflict'],
      }),
    },
    async (request) => {
      const { accountId } = await memberOf(dependencies, request, request.params.accountId, 'owner')
      const { userId } = request.params
      await members.changeRole(accountId, userId, check(withRole, request.body).role, request.visitor.userId)
      return showMember((await members.list(accountId)).find((each) => each.userId === userId)!)
    },
  )

  app.delete<OfMember>(
    `${ACCOUNT}/members/:userId`,
    {
      config: reads,
      schema: forSession({
        ...shared,
        id: 'removeMember',
        params: memberParams,
        summary: 'Remove a member',
        description: 'Requires the role owner, except to leave the account oneself. Returns 409 for the last owner.',
        answer: done,
        errors: ['not_found', 'conflict'],
      }),
    },
    async (request) => {
      const { userId } = request.params
      const least = userId === request.visitor.userId ? 'viewer' : 'owner'
      const { accountId } = await memberOf(dependencies, request, request.params.accountId, least)
      await members.remove(accountId, userId, request.visitor.userId)
      return {}
    },
  )

  app.post<OfMember>(
    `${ACCOUNT}/members/:userId/reset-link`,
    {
      config: reads,
      schema: forSession({
        ...shared,
        id: 'createResetLink',
        params: memberParams,
        summary: 'Create a link for a new password',
        description:
          'Requires the role owner in every account of the member. Other members must ask the server’s operator.',
        answer: oneTimeLink,
        errors: ['not_found', 'conflict'],
      }),
    },
    async (request) => {
      const { accountId } = await memberOf(dependencies, request, request.params.accountId, 'owner')
      const { userId } = request.params
      const { userId: actor } = request.visitor
      if (!(await members.find(userId, accountId))) throw new ErrandError('not_found', 'There is no such member.')
      // Setting the password gives access to all accounts of that user.
      const own = await members.ofUser(actor)
      const owned = new Set(own.filter((each) => each.role === 'owner').map((each) => each.accountId))
      if (!(await members.ofUser(userId)).every((each) => owned.has(each.accountId))) {
        throw new ErrandError(
          'conflict',
          'This member also belongs to accounts that you do not own. Ask the server’s operator for a link.',
        )
      }
      const entry = { accountId, action: 'password.reset_link_created', actor, target: userId } as const
      const { token, link } = await links.create({ kind: 'reset', userId }, entry)
      return showLink(dependencies, link, token)
    },
  )
}

export function inviteRoutes(app: FastifyInstance, dependencies: ConsoleDependencies): void {
  const { links } = dependencies.accounts

  app.post<OfAccount>(
    `${ACCOUNT}/invites`,
    {
      config: writes,
      schema: forSession({
        ...shared,
        id: 'createInvite',
        summary: 'Invite a member',
        description:
          'Requires the role owner. Creates a one-time link that is valid for seven days. The user who opens it joins with that role.',
        body: withRole,
        answer: oneTimeLink.extend({ invite }),
      }),
    },
    async (request) => {
      const { accountId } = await memberOf(dependencies, request, request.params.accountId, 'owner')
      const asked = check(withRole, request.body)
      const entry = { accountId, action: 'invite.created', actor: request.visitor.userId, details: asked } as const
      const { token, link } = await links.create({ kind: 'invite', accountId, ...asked }, entry)
      return { invite: showInvite(link), ...showLink(dependencies, link, token) }
    },
  )

  app.delete<{ Params: z.infer<typeof inviteParams> }>(
    `${ACCOUNT}/invites/:inviteId`,
    {
      config: reads,
      schema: forSession({
        ...shared,
        id: 'revokeInvite',
        params: inviteParams,
        summary: 'Revoke an invitation',
        description: 'Requires the role owner. The link stops working.',
        answer: done,
      }),
    },
    async (request) => {
      const { accountId } = await memberOf(dependencies, request, request.params.accountId, 'owner')
      const { inviteId } = request.params
      const entry = { accountId, action: 'invite.revoked', actor: request.visitor.userId, target: inviteId } as const
      if (!(await links.revokeInvite(accountId, inviteId, entry))) {
        throw new ErrandError('not_found', `There is no invitation ${JSON.stringify(inviteId)}.`)
      }
      return {}
    },
  )
}

function showMember({ userId, name, email, role, joinedAt }: Member) {
  return { userId, name, email, role, joinTime: rfc3339(joinedAt) }
}

function showInvite({ id, role, createdAt, expiresAt }: Link) {
  return { id, role: role!, createTime: rfc3339(createdAt), expireTime: rfc3339(expiresAt) }
}

function showLink({ publicUrl }: ConsoleDependencies, { kind, expiresAt }: Link, token: string) {
  return { link: publicUrl() + pathOfLink(kind, token), expireTime: rfc3339(expiresAt) }
}
