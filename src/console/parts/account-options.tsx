import type { SessionPerson } from '../session.ts';

/** The accounts of a person, as the options of a `select`. */
export function AccountOptions({ of: { memberships } }: { of: SessionPerson }) {
  return (
    <>
      {memberships.map(({ accountId, accountName }) => (
        <option value={accountId} key={accountId}>
          {accountName || accountId}
        </option>
      ))}
    </>
  );
}
