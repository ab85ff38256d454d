import type * as z from 'zod';
import type { domainSchema, registered } from '../../../http/api/domains/domain-schemas.ts';
import { callApi } from '../../api.ts';
import { useData } from '../../data.ts';
import { Empty, Loaded, Outcome, Page, Status, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';

interface UseCase {
  id: string;
  useCase: 'tx' | 'mk';
  region: { code: string; name: string };
}

/** The domains of the account, and a form that registers another one. */
export function DomainsPage() {
  const { t, time } = useTexts();
  const { href } = useNavigation();
  const { may } = useMember();
  const list = useData<{ domains: z.output<typeof domainSchema>[] }>('/web-setup/domains');
  return (
    <Page title={t('page.domains')} question={t('domains.question')} curl="/web-setup/domains">
      <Loaded data={list}>
        {({ domains }) =>
          domains.length === 0 ? (
            <Empty title={t('domains.empty')}>
              <p>{t('domains.empty.hint')}</p>
            </Empty>
          ) : (
            <Table
              label={t('domains.list')}
              heads={[t('messages.domain'), t('domains.useCase'), t('domains.status'), t('domains.checked')]}
            >
              {domains.map(({ domain, domainId, useCase, status, lastCheckedAt }) => (
                <tr key={domainId}>
                  <td>
                    <a href={href(`domains/${encodeURIComponent(domainId)}`)}>{domain}</a>
                  </td>
                  <td>{t(`domains.useCase.${useCase}`)}</td>
                  <td>
                    <Status name={status} />
                  </td>
                  <td>{lastCheckedAt === null ? t('domains.never') : time(lastCheckedAt)}</td>
                </tr>
              ))}
            </Table>
          )
        }
      </Loaded>
      {may('registerDomain') && <Registration />}
    </Page>
  );
}

function Registration() {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId } = useMember();
  const useCases = useData<{ useCases: UseCase[] }>('/web-setup/use-cases');
  const { outcome, run } = useAction();
  const register = (form: FormData) =>
    run(async () => {
      const { domainId, message } = await callApi<z.output<typeof registered>>('/web-setup/domains', {
        method: 'PUT',
        account: accountId,
        body: { domain: form.get('domain'), useCaseId: form.get('useCaseId') },
      });
      go(href(`domains/${encodeURIComponent(domainId)}`));
      return message;
    });
  return (
    <>
      <h2>{t('domains.add')}</h2>
      <Loaded data={useCases}>
        {(list) => (
          <form
            class="search"
            onSubmit={(event) => {
              event.preventDefault();
              void register(new FormData(event.currentTarget));
            }}
          >
            <label>
              {t('domains.name')}
              <input
                name="domain"
                required
                maxLength={1000}
                autocomplete="off"
                autocapitalize="none"
                spellcheck={false}
                aria-describedby="domain-hint"
              />
              <span id="domain-hint" class="small">
                {t('domains.name.hint')}
              </span>
            </label>
            <label>
              {t('domains.useCase')}
              <select name="useCaseId">
                {list.useCases.map(({ id, useCase, region }) => (
                  <option value={id} key={id}>
                    {t(`domains.useCase.${useCase}`)} ({region.name})
                  </option>
                ))}
              </select>
            </label>
            <div class="actions">
              <button type="submit" class="primary" disabled={outcome?.running}>
                {t('domains.register')}
              </button>
            </div>
          </form>
        )}
      </Loaded>
      <Outcome of={outcome} />
    </>
  );
}
