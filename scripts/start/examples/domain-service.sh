# log in, and keep the token
API=http://127.0.0.1:3001/api
TOKEN=$(curl -sS -w '\n' $API/auth/login -H 'content-type: application/json' -d '{"username":"admin","password":"PASSWORD"}' | sed -e 's/.*"access_token":"\([^"]*\)".*/\1/' -e t -e 'w /dev/stderr' -e d)
# list domains, and read the records of one
curl -sS -w '\n' -H "authorization: Bearer $TOKEN" "$API/domains?page_size=3"
curl -sS -w '\n' -H "authorization: Bearer $TOKEN" $API/domains/alder-and-finch.com/dns/hosts
# add a record, and see it in the zone
curl -sS -w '\n' -H "authorization: Bearer $TOKEN" -H 'content-type: application/json' $API/domains/alder-and-finch.com/dns/hosts/A -d '{"name":"hello","address":"192.0.2.10"}'
curl -sS -w '\n' -H "authorization: Bearer $TOKEN" $API/domains/alder-and-finch.com/dns/hosts
# replace the whole zone, and take that back with the history
curl -sS -w '\n' -X PUT -H "authorization: Bearer $TOKEN" -H 'content-type: application/json' $API/domains/alder-and-finch.com/dns/hosts -d '{"hosts":[{"name":"@","type":"A","address":"192.0.2.1"}]}'
CHANGE=$(curl -sS -H "authorization: Bearer $TOKEN" "$API/domains/alder-and-finch.com/dns/history?page_size=1" | sed 's/.*"history":\[{"id":\([0-9]*\).*/\1/')
curl -sS -w '\n' -X POST -H "authorization: Bearer $TOKEN" $API/domains/alder-and-finch.com/dns/history/$CHANGE/restore
