/** Rules for new passwords: long and not common. No character classes are required. */

export const PASSWORD_CHARS = { min: 12, max: 128 } as const

/** Common passwords of 12 characters or more. */
const COMMON = new Set(
  `123456789012 1234567890123 12345678901234 123456789123 123123123123 121212121212 111111111111 000000000000
  abcdefghijkl abcdefghijklm qwertyuiop12 qwertyuiop123 qwertyuiopas qwertyuiopasdfghjkl qwerty123456 qwerty1234567
  1q2w3e4r5t6y 1qaz2wsx3edc q1w2e3r4t5y6 zaq12wsxcde3 asdfghjkl123 passwordpassword password1234 password12345
  password123456 passw0rd1234 p@ssw0rd1234 p@ssword1234 administrator administrator1 admin1234567 adminadmin12
  adminadminadmin welcome12345 welcome123456 letmeinletmein iloveyou1234 iloveyouiloveyou changeme1234
  changemechangeme trustno1trustno1 correcthorsebatterystaple abc123456789 a1b2c3d4e5f6 football1234 baseball1234
  sunshine1234 princess1234 superman1234 unknownunknown testtesttest test12345678 secretsecret secret123456
  errand123456 errandpassword`.split(/\s+/),
)

/** Why the text is not an acceptable password, as a phrase that follows the field's name. Undefined if it is. */
export function passwordProblem(password: string, email: string): string | undefined {
  const { min, max } = PASSWORD_CHARS
  if (password.length < min) return `must have at least ${min} characters`
  if (password.length > max) return `may have at most ${max} characters`
  const plain = password.toLowerCase()
  if (COMMON.has(plain)) return 'is one of the most common passwords; choose another one'
  if (plain.includes(email.toLowerCase()) || new Set(plain).size < 4) {
    return 'is too easy to guess; choose another one'
  }
  return undefined
}
