/** Responses about the signed-in visitor, and the session cookies. */
import type { FastifyReply } from 'fastify'
import type { Cookies, Visitor } from '../../accounts/sign-in.ts'
import { rfc3339 } from '../wire/time.ts'
import type { ConsoleDependencies } from './dependencies.ts'

export async function showVisitor(
  { accounts }: ConsoleDependencies,
  { userId, name, email, createdAt, sessionId }: Visitor,
) {
  const memberships = await accounts.members.ofUser(userId)
  return {
    user: { id: userId, name, email, createTime: rfc3339(createdAt) },
    sessionId,
    accounts: await Promise.all(
      memberships.map(async ({ accountId, accountName, role, enabled }) => {
        const projects = await accounts.projects.list(accountId)
        return { id: accountId, name: accountName, role, enabled, projects: projects.map(showProject) }
      }),
    ),
  }
}

/**
 * Sets the cookies of a new session, and returns its visitor. Without a new session, returns `visitor`, who was signed
 * in before.
 */
export async function showNewVisitor(
  dependencies: ConsoleDependencies,
  reply: FastifyReply,
  cookies: Cookies,
  visitor: Visitor | undefined,
) {
  setCookies(reply, cookies)
  const newVisitor = await dependencies.signIn.visitor(cookies.map((line) => line.split(';')[0]).join('; '))
  return showVisitor(dependencies, (newVisitor ?? visitor)!)
}

export function showProject({ id, name, createdAt }: { id: string; name: string; createdAt: number }) {
  return { id, name, createTime: rfc3339(createdAt) }
}

export function setCookies(reply: FastifyReply, cookies: Cookies): void {
  if (cookies.length > 0) reply.header('Set-Cookie', [...cookies])
}
