/**
 * Becoming a user: with a one-time link, or by signing up, if the operator allows it. An e-mail address that already has a user
 * needs that user's password; any other password gets the error for a wrong one.
 */
import { ErrandError } from '../domain/errors.ts'
import { randomBase62 } from '../domain/ids.ts'
import { type Database, type Statement, wasMade } from '../store/port.ts'
import { entryStatement } from './account-log.ts'
import type { Link, Links } from './links.ts'
import type { Role } from './members.ts'
import { passwordProblem } from './password-rules.ts'
import type { Projects } from './projects.ts'
import type { Cookies, Origin, SignIn, Visitor } from './sign-in.ts'

export interface Person {
  readonly name?: string
  readonly email?: string
  readonly password?: string
}

/** Every operation throws ErrandError `not_found` (invalid link), `invalid_request`, `unauthenticated`, `rate_limited`. */
export interface Joining {
  /** Describes the link without using it. */
  inspect(token: string): Promise<{ readonly link: Link; readonly accountName?: string; readonly email?: string }>
  /** `visitor`: the signed-in user, who needs no further data. Returns the new session's cookies, or none for a visitor. */
  accept(token: string, person: Person, visitor: Visitor | undefined, origin: Origin): Promise<Cookies>
  /** Creates a user with their own account, in which the service is off, and a project. */
  signUp(person: Required<Person>, accountName: string | undefined, origin: Origin): Promise<Cookies>
}

export interface JoiningParts {
  readonly db: Database
  readonly links: Links
  readonly projects: Projects
  readonly signIn: SignIn
  readonly now: () => number
}

export function createJoining({ db, links, projects, signIn, now }: JoiningParts): Joining {
  async function goodLink(token: string): Promise<Link> {
    const link = await links.find(token)
    if (!link) throw linkIsOver()
    return link
  }

  const emailOf = async (userId: string) =>
    (await db.query.selectFrom('users').select('email').where('id', '=', userId).executeTakeFirst())?.email

  /** Creates the user, or signs in the existing one with the password. */
  async function userFor(person: Required<Person>, origin: Origin) {
    checkPassword(person.password, person.email)
    const made = await signIn.createUser(person)
    const cookies = await signIn.withPassword(person.email, person.password, origin)
    if (made !== undefined) return { userId: made, cookies }
    const row = await db.query
      .selectFrom('users')
      .select('id')
      .where('email', '=', person.email.toLowerCase())
      .executeTakeFirstOrThrow()
    return { userId: row.id, cookies }
  }

  async function join(link: Link, userId: string): Promise<void> {
    const { accountId, role } = link as Required<Link>
    const result = await db.write([
      links.use(link),
      { query: memberQuery(accountId, userId, role) },
      entryStatement(
        db,
        { accountId, action: 'member.joined', actor: userId, target: userId, details: { role } },
        now(),
      ),
    ])
    if (wasMade(result, 'fence', 'unique')) return
    if (result.reason === 'unique') throw new ErrandError('conflict', 'You are already a member of this account.')
    throw linkIsOver()
  }

  function memberQuery(account_id: string, user_id: string, role: Role) {
    return db.query.insertInto('members').values({ account_id, user_id, role, created_at: now() }).compile()
  }

  async function resetPassword(link: Link, password: string | undefined, origin: Origin): Promise<Cookies> {
    const email = await emailOf(link.userId!)
    if (email === undefined) throw linkIsOver()
    checkPassword(required(password, 'password'), email)
    if (!wasMade(await db.write([links.use(link)]), 'fence')) throw linkIsOver()
    await signIn.setPassword(link.userId!, password!)
    return signIn.withPassword(email, password!, origin)
  }

  return {
    async inspect(token) {
      const link = await goodLink(token)
      if (link.kind === 'reset') return { link, email: await emailOf(link.userId!) }
      const row = await db.query
        .selectFrom('accounts')
        .select('name')
        .where('id', '=', link.accountId!)
        .executeTakeFirst()
      return { link, accountName: row?.name }
    },

    async accept(token, { name, email, password }, visitor, origin) {
      const link = await goodLink(token)
      if (link.kind === 'reset') return resetPassword(link, password, origin)
      if (visitor) {
        await join(link, visitor.userId)
        return []
      }
      const person = {
        name: required(name, 'name'),
        email: required(email, 'email'),
        password: required(password, 'password'),
      }
      const { userId, cookies } = await userFor(person, origin)
      await join(link, userId)
      return cookies
    },

    async signUp(person, accountName, origin) {
      const { userId, cookies } = await userFor(person, origin)
      const owner = (accountId: string): Statement[] => [{ query: memberQuery(accountId, userId, 'owner') }]
      const name = accountName ?? person.name
      const accountId = await projects
        .createAccount(name, owner, userId)
        .catch(() => projects.createAccount(`${name} ${randomBase62(6)}`, owner, userId))
      await projects.create(accountId, 'default', userId)
      return cookies
    },
  }
}

export function checkPassword(password: string, email: string, param = 'password'): void {
  const problem = passwordProblem(password, email)
  if (problem !== undefined) throw new ErrandError('invalid_request', `\`${param}\` ${problem}.`, { param })
}

function required(value: string | undefined, param: string): string {
  if (value !== undefined) return value
  throw new ErrandError('invalid_request', `\`${param}\` is required.`, { param })
}

function linkIsOver(): ErrandError {
  return new ErrandError(
    'not_found',
    'This link is not valid: it was used, has expired, or does not exist. Ask for a new one.',
  )
}
