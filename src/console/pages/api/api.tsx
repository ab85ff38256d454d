import { useMemo } from 'preact/hooks';
import type { OpenApiDocument } from '../../../http/openapi/document.ts';
import { useDocument } from '../../data.ts';
import { Empty, Loaded, Page } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { OperationForm } from './operation-form.tsx';
import { type ApiOperation, matching, operationsOf } from './operations.ts';
import './api.css';

/** The operations of the API, each with a form that calls it as the person of the session. */
export function ApiPage({ operationId }: { operationId: string | null }) {
  const { t } = useTexts();
  const document = useDocument<OpenApiDocument>('/console/api/openapi.json');
  return (
    <Page title={t('page.api')} question={t('api.question')}>
      <Loaded data={document}>{(value) => <Operations document={value} operationId={operationId} />}</Loaded>
    </Page>
  );
}

function Operations({ document, operationId }: { document: OpenApiDocument; operationId: string | null }) {
  const { t } = useTexts();
  const { location, href, go } = useNavigation();
  const { accountId, person, has } = useMember();
  const operations = useMemo(
    () => operationsOf(document, (id) => has(person.operations[id] ?? 'operator')),
    [document, accountId],
  );
  const { filter = '' } = location.query;
  const found = matching(operations, filter);
  const chosen = operations.find(({ id }) => id === operationId);
  const page = operationId === null ? 'reference' : `reference/${encodeURIComponent(operationId)}`;
  return (
    <div class={chosen === undefined ? 'operations' : 'operations chosen'}>
      <nav class="card" aria-label={t('api.operations')}>
        <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
          <input
            class="input"
            type="search"
            aria-label={t('api.filter')}
            placeholder={t('api.filter')}
            value={filter}
            onInput={({ currentTarget: { value } }) =>
              go(href(page, { filter: value || undefined }), { replace: true })
            }
          />
        </form>
        {found.length === 0 && <Empty title={t('api.none')} />}
        {[...new Set(found.map(({ tag }) => tag))].map((tag) => (
          <details key={tag} open={filter !== '' || chosen?.tag === tag}>
            <summary>{tag}</summary>
            <ul>
              {found
                .filter((each) => each.tag === tag)
                .map((each) => (
                  <li key={each.id}>
                    <OperationLink of={each} isCurrent={each === chosen} filter={filter} />
                  </li>
                ))}
            </ul>
          </details>
        ))}
      </nav>
      {chosen !== undefined ? (
        <OperationForm key={chosen.id} operation={chosen} />
      ) : (
        <Empty title={t(operationId === null ? 'api.choose' : 'api.unknown')} icon="code">
          <p>{t('api.choose.hint')}</p>
        </Empty>
      )}
    </div>
  );
}

function OperationLink(props: { of: ApiOperation; isCurrent: boolean; filter: string }) {
  const { href } = useNavigation();
  const { id, summary, method } = props.of;
  return (
    <a
      href={href(`reference/${encodeURIComponent(id)}`, { filter: props.filter || undefined })}
      aria-current={props.isCurrent ? 'page' : undefined}
    >
      {summary} <span class="small">{method}</span>
    </a>
  );
}
