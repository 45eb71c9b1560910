/** Dependencies of the console's own routes, and their role checks. */
import type { FastifyRequest } from 'fastify'
import type { AccountLog } from '../../accounts/account-log.ts'
import type { Accounts } from '../../accounts/accounts.ts'
import type { Joining } from '../../accounts/joining.ts'
import type { Membership, Role } from '../../accounts/members.ts'
import type { Project } from '../../accounts/projects.ts'
import type { SignIn } from '../../accounts/sign-in.ts'
import { ErrandError } from '../../domain/errors.ts'
import type { Budgets } from '../../engine/budgets.ts'
import type { Engine } from '../../engine/engine.ts'
import type { Catalogue, ModelHealth } from '../../models/port.ts'
import type { AgentStore } from '../../store/agent-store.ts'
import type { UsageQuestion } from '../../store/usage.ts'
import type { UsageReport } from '../../store/usage-report.ts'
import type { CheckMcp } from '../../tools/mcp/check-server.ts'
import { noProject } from '../gate/session.ts'

export interface ConsoleDependencies {
  readonly accounts: Accounts
  readonly signIn: SignIn
  readonly joining: Joining
  readonly log: AccountLog
  readonly budgets: Pick<Budgets, 'status' | 'set'>
  /** Usage of these projects. Throws ErrandError `invalid_request` if the report would be too long. */
  readonly usage: (question: UsageQuestion) => Promise<UsageReport>
  readonly engine: Pick<Engine, 'webhooks'>
  readonly agents: Pick<AgentStore, 'list'>
  readonly catalogue: Catalogue
  /** MCP servers that the operator registered, and the kind of each. */
  readonly mcpServers: Readonly<Record<string, 'address' | 'program'>>
  readonly checkMcp: CheckMcp
  /** Recent model health on each process that calls models. `name` is null if there is only one process. */
  readonly nodes: () => readonly {
    readonly name: string | null
    readonly health: Readonly<Record<string, ModelHealth>>
  }[]
  /** Whether visitors may create an account of their own. */
  readonly signUp: boolean
  /** This server's URL for browsers. */
  readonly publicUrl: () => string
}

export const CONSOLE = '/console/api'
export const ACCOUNT = `${CONSOLE}/accounts/:accountId`
export const PROJECT = `${CONSOLE}/projects/:projectId`

/** Roles, from the least to the most privileged. */
const RANKS: readonly Role[] = ['viewer', 'developer', 'owner']

/**
 * Returns the visitor's membership in the account. Throws ErrandError `not_found` if the visitor is not a member, and
 * `permission_denied` if the role is lower than `least`.
 */
export async function memberOf(
  dependencies: ConsoleDependencies,
  request: FastifyRequest,
  accountId: string,
  least: Role,
): Promise<Membership> {
  const membership = await dependencies.accounts.members.find(request.visitor.userId, accountId)
  if (!membership) throw new ErrandError('not_found', `There is no account ${JSON.stringify(accountId.slice(0, 80))}.`)
  checkRole(membership, least)
  return membership
}

/** Returns the project if the visitor is a member of its account. Throws the same errors as memberOf. */
export async function projectFor(
  dependencies: ConsoleDependencies,
  request: FastifyRequest,
  id: string,
  least: Role,
): Promise<Project> {
  const membership = await dependencies.accounts.members.findByProject(request.visitor.userId, id)
  const project = membership && (await dependencies.accounts.projects.find(id))
  if (!project) throw noProject(id)
  checkRole(membership, least)
  return project
}

function checkRole({ role }: Membership, least: Role): void {
  if (RANKS.indexOf(role) >= RANKS.indexOf(least)) return
  throw new ErrandError(
    'permission_denied',
    `This requires the role \`${least}\` in the account. Your role is \`${role}\`.`,
  )
}
