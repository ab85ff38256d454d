import { useOperation } from '../../data.ts';
import { addressOf } from '../../operations.ts';
import { Icon } from '../../parts/icon/icon.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Time } from '../../parts/time.tsx';
import { Empty, Loaded, Page, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';

const PATH = '/web-setup/segments';

/** The segments of the account. */
export function SegmentListPage() {
  const { t, number } = useTexts();
  const { location, href } = useNavigation();
  const { may } = useMember();
  const parameters = { limit: 50, lastKey: location.query['lastKey'] };
  const list = useOperation(PATH, parameters);
  return (
    <Page
      title={t('page.segments')}
      question={t('segments.question')}
      curl={addressOf(PATH, parameters)}
      actions={
        may('createSegment') && (
          <a class="button primary" href={href('segments/new')}>
            <Icon name="plus" />
            {t('segments.new')}
          </a>
        )
      }
    >
      <Loaded data={list} isList>
        {({ segments, nextKey }) => (
          <>
            {segments.length === 0 ? (
              <Empty title={t('segments.empty')} icon="funnel">
                <p>{t('segments.empty.hint')}</p>
              </Empty>
            ) : (
              <Table
                label={t('page.segments')}
                isList
                heads={[
                  t('people.name'),
                  { text: t('page.contacts'), end: true },
                  { text: t('messages.created'), end: true },
                ]}
              >
                {segments.map((each) => (
                  <tr key={each.segmentId}>
                    <th scope="row">
                      <a href={href(`segments/${encodeURIComponent(each.segmentId)}`)}>{each.name}</a>
                    </th>
                    <td class="second end">{each.count === null ? '–' : number(each.count)}</td>
                    <td class="when">
                      <Time at={each.createdAt} />
                    </td>
                  </tr>
                ))}
              </Table>
            )}
            <Pager path="segments" filters={{}} nextKey={nextKey} />
          </>
        )}
      </Loaded>
    </Page>
  );
}
