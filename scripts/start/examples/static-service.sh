# log in to the static service, and keep its token
FILES=http://127.0.0.1:3002
TOKEN=$(curl -sS -w '\n' $FILES/api/auth/login -H 'content-type: application/json' -d '{"username":"admin","password":"PASSWORD"}' | sed -e 's/.*"access_token":"\([^"]*\)".*/\1/' -e t -e 'w /dev/stderr' -e d)
# upload a file, and two files as a batch; `-F file=@hello.txt` uploads one of yours
echo 'Hello, files' | curl -sS -w '\n' -H "authorization: Bearer $TOKEN" -F path=notes/ -F 'file=@-;filename=hello.txt' $FILES/api/files/upload
curl -sS -w '\n' -H "authorization: Bearer $TOKEN" -F path=site -F 'files=Hi;filename=index.html' -F 'files=h1 { color: teal };filename=style.css' $FILES/api/files/upload/batch
# list, search, tree
curl -sS -w '\n' -H "authorization: Bearer $TOKEN" "$FILES/api/files/?page_size=2"
curl -sS -w '\n' -H "authorization: Bearer $TOKEN" "$FILES/api/files/?search=hello"
curl -sS -w '\n' -H "authorization: Bearer $TOKEN" $FILES/api/files/tree
# fetch it without a token, and a part of it
curl -sS $FILES/static/notes/hello.txt
curl -sS -w '\n' -H 'range: bytes=0-4' $FILES/static/notes/hello.txt
# create a version, and read the current one without a token
curl -sS -w '\n' -H "authorization: Bearer $TOKEN" -H 'content-type: application/json' $FILES/api/versions/ -d "{\"version\":\"1.0.$(date +%s)\",\"changelog\":\"The first\"}"
curl -sS -w '\n' $FILES/api/versions/current
# delete the file
curl -sS -w '%{http_code}\n' -X DELETE -H "authorization: Bearer $TOKEN" $FILES/api/files/notes/hello.txt
