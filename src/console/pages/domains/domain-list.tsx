import { useOperation } from '../../data.ts';
import { Icon } from '../../parts/icon/icon.tsx';
import { Time } from '../../parts/time.tsx';
import { Empty, Loaded, Page, Status, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { Registration } from './registration.tsx';

/** The domains of the account. */
export function DomainsPage() {
  const { t } = useTexts();
  const { href } = useNavigation();
  const { may } = useMember();
  const list = useOperation('/web-setup/domains');
  return (
    <Page
      title={t('page.domains')}
      question={t('domains.question')}
      curl="/web-setup/domains"
      actions={
        may('registerDomain') &&
        list.value !== null &&
        list.value.domains.length > 0 && (
          <a class="button primary" href={href('domains/new')}>
            <Icon name="plus" />
            {t('domains.add')}
          </a>
        )
      }
    >
      <Loaded data={list}>
        {({ domains }) =>
          domains.length === 0 ? (
            <>
              <Empty title={t('domains.empty')} icon="globe">
                <p>{t('domains.empty.hint')}</p>
              </Empty>
              <h2>{t('domains.add')}</h2>
              <Registration />
            </>
          ) : (
            <Table
              label={t('domains.list')}
              isList
              heads={[
                t('messages.domain'),
                t('domains.useCase'),
                t('domains.status'),
                { text: t('domains.checked'), end: true },
              ]}
            >
              {domains.map(({ domain, domainId, useCase, status, lastCheckedAt }) => (
                <tr key={domainId}>
                  <th scope="row">
                    <a href={href(`domains/${encodeURIComponent(domainId)}`)}>{domain}</a>
                  </th>
                  <td class="second">{t(`domains.useCase.${useCase}`)}</td>
                  <td class="aside">
                    <Status name={status} />
                  </td>
                  <td class="when">
                    {lastCheckedAt === null ? t('domains.never') : <Time at={lastCheckedAt} />}
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </Loaded>
    </Page>
  );
}
