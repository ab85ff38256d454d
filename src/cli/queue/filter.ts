import { normalizeDomain } from '../../mail/address.ts';
import type { QueueFilter } from '../../store/messages/queue-list.ts';
import type { Tables } from '../../store/tables.ts';
import { type OptionValues, option } from '../command.ts';
import type { CliContext } from '../context.ts';

/** Options that select queued messages. */
export const filterOptions = [
  option('--account <id>', 'only of this account'),
  option('--destination <domain>', 'only to this recipient domain'),
  option('--campaign <id>', 'only of this campaign'),
  option('--domain <id>', 'only from this sending domain (its id)'),
] as const;

export type FilterOptions = OptionValues<typeof filterOptions>;

/** The filter as a part of a sentence: ` to example.net of account acct_…`. */
export function describe({ accountId, destination, campaignId, domainId }: QueueFilter): string {
  return [
    destination === undefined ? '' : ` to ${destination}`,
    accountId === undefined ? '' : ` of account ${accountId}`,
    campaignId === undefined ? '' : ` of campaign ${campaignId}`,
    domainId === undefined ? '' : ` from domain ${domainId}`,
  ].join('');
}

/** The filter of the options. Fails if an object does not exist. */
export function filterOf(
  context: CliContext,
  tables: Tables,
  { account, destination, campaign, domain }: FilterOptions,
): QueueFilter {
  const filter: QueueFilter = {};
  if (account !== undefined) {
    if (tables.accounts.get(account) === null) context.fail(`There is no account ${account}`);
    filter.accountId = account;
  }
  if (destination !== undefined)
    filter.destination =
      normalizeDomain(destination) ?? context.usage(`--destination: ${destination} is not a domain name`);
  if (campaign !== undefined) {
    const accounts = account === undefined ? tables.accounts.list().map((row) => row.account_id) : [account];
    if (accounts.every((id) => tables.campaigns.get(id, campaign) === null))
      context.fail(`There is no campaign ${campaign}`);
    filter.campaignId = campaign;
  }
  if (domain !== undefined) {
    const row = tables.domains.byId(domain);
    if (row === null || (account !== undefined && row.account_id !== account))
      context.fail(`There is no domain ${domain}`);
    filter.domainId = domain;
  }
  return filter;
}
