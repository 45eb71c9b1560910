/** Tests of the vault, which encrypts secrets. */
import { expect, it } from 'vitest'
import { createVault } from '../../src/accounts/vault.ts'

const OWNER = ['credential', 'prj_1', 'tracker']

it('unsealing returns the original text, and sealing it twice gives different results', () => {
  const vault = createVault('one secret')
  for (const text of ['', 'x', 'ünïcode 🙂 \0', 'a'.repeat(100_000)]) {
    const sealed = [vault.seal(text, OWNER), vault.seal(text, OWNER)]
    expect(sealed.map((each) => createVault('one secret').unseal(each, OWNER))).toEqual([text, text])
    expect(sealed[0]).not.toBe(sealed[1])
    expect(sealed[0]).toMatch(/^[\w-]+$/)
  }
})

it('a sealed text opens only with the same owner and the same server secret', () => {
  const vault = createVault('one secret')
  const sealed = vault.seal('the-content', OWNER)
  const others = [
    ['credential', 'prj_2', 'tracker'],
    ['credential', 'prj_1', 'tracker2'],
    ['credential', 'prj_1tracker'],
    ['run', 'prj_1', 'tracker'],
    [],
  ]
  for (const owner of others) expect(() => vault.unseal(sealed, owner)).toThrow('could not be opened')
  expect(() => createVault('another secret').unseal(sealed, OWNER)).toThrow('could not be opened')
})

it('rejects a sealed text with any bit flipped, or cut off anywhere', () => {
  const vault = createVault('one secret')
  const bytes = Buffer.from(vault.seal('the-content', OWNER), 'base64url')
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = Buffer.from(bytes)
    changed[bit >> 3]! ^= 1 << (bit & 7)
    expect(() => vault.unseal(changed.toString('base64url'), OWNER), `bit ${bit}`).toThrow('could not be opened')
  }
  for (let length = 0; length < bytes.length; length++) {
    expect(() => vault.unseal(bytes.subarray(0, length).toString('base64url'), OWNER)).toThrow('could not be opened')
  }
})
